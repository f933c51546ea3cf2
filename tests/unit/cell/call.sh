#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Commands called by a program, as the console does: the same results as with --json, as the person who asks, and never
# with the rights of the process, which here is root beside the cell.
. "$(dirname "$0")/lib.sh"
private "$@"
call=${top_builddir:-$top/build}/tests/unit/suites/call
[ -x "$call" ] || { echo "1..0 # SKIP $call is not built"; exit 0; }
for p in kinit jq; do type -P $p >/dev/null || { echo "1..0 # SKIP needs the program $p"; exit 0; }; done
plan 20
echo secret >"$work/pw"
conf id "administrators: [admin]
users: {admin: {id: 1, password_file: $work/pw}, alice: {id: 1001, password_file: $work/pw}}"
export AFSCELL_CONFIG=$work/id.yaml
says_json() { local q=$1; shift; "$@" >"$work/.json" && jq -e "$q" "$work/.json" || { cat "$work/.json"; return 1; }; }
login() { export KRB5CCNAME=FILE:$work/cc.$1; kinit "$1" <"$work/pw" >/dev/null; }
same() { local a=$1; shift; "$@" --json | jq -S . >"$work/1"; [ -s "$work/1" ] && jq -S .result "$work/.json" | diff "$work/1" - || { echo "$a differs"; return 1; }; }

check "the cell comes up" "$afscell" up
eval "$("$afscell" env)"
check "nobody may look where anybody may" says_json '.status == 0 and (.result | length) > 0' "$call" 'vos listvldb' '{"noauth": true}'
check "... with the result of --json" same listvldb "$afscell" vos listvldb -noauth
login admin # whatever tickets the process has
check "nobody is nobody, whatever tickets the process has" says_json '.status == 1 and (.text | test("not permitted"))' "$call" 'pts createuser' '{"name": "eve"}'
check "... and the key of the process is not his" says_json '.status == 1 and (.text | test("only an administrator"))' "$call" 'pts createuser' '{"name": "eve", "localauth": true}'
check "... nor is the control socket" says_json '.status == 1 and (.text | test("only an administrator"))' "$call" 'user add' '{"name": "eve"}'
check "... nor a file" says_json '.status == 2 and (.text | test("only a shell"))' "$call" 'user add' '{"name": "eve", "password-file": "/etc/shadow"}' owner
check "... nor a command for shells" says_json '.status == 2 and (.text | test("no command"))' "$call" 'vos dump' '{"id": "root.cell", "file": "/tmp/x"}' owner
check "nothing of this was done" fails 'no such user' "$afscell" pts examine eve -localauth
check "the holder of a token asks as himself" says_json '.status == 0 and .result[0].id == 1001' "$call" 'pts examine' '{"nameorid": ["alice"]}' token id.test
check "... with the result of --json" same examine "$afscell" pts examine alice
check "... and as an administrator when he is one" says_json '.status == 0' "$call" 'pts createuser' '{"name": ["eve", "finn"], "id": [2001, "2002"]}' token id.test
check "... done" says 'id: 2002' "$afscell" pts examine finn -localauth
login alice
check "... and else not" says_json '.status == 1 and (.text | test("not permitted.*caller is alice@ID.TEST"))' "$call" 'vos create' '{"server": "localhost", "partition": "a", "name": "v"}' token id.test
check "the owner has the verbs of the running cell" says_json '.status == 0 and (.result.password | length) == 20' "$call" 'user add' '{"name": "gina", "group": ["system:administrators"]}' owner
check "... and the cell's own key when he asks for it" says_json '.status == 0 and .result.name == "v.one"' "$call" 'vos create' '{"server": "localhost", "partition": "a", "name": "v.one", "maxquota": 777, "localauth": true}' owner
check "... told of the steps" sh -c "'$call' 'vos remove' '{\"id\": \"v.one\", \"localauth\": true}' owner 2>&1 >/dev/null | grep '^# '"
check "what fails has words" says_json '.status == 1 and (.text | test("no such"))' "$call" 'vos examine' '{"id": "nosuch", "noauth": true}'
check "doctor can be called" says_json '.status == 0 and (.result | map(.check) | index("role"))' "$call" doctor '{}' owner
check "nothing went to standard output but the result" sh -c "[ \$('$call' 'bos status' '{\"server\": \"localhost\", \"long\": true, \"noauth\": true}' | wc -l) = 1 ]"
