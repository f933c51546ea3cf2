#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The console of a real cell: who gets what, with and without the session, its word and the right origin.
. "$(dirname "$0")/../cell/lib.sh"
private "$@"
type -P jq curl >/dev/null || { echo "1..0 # SKIP needs the programs jq and curl"; exit 0; }
plan 35
echo admins-long-password >"$work/admin.pw"; echo alices-long-password >"$work/alice.pw"; chmod 600 "$work"/*.pw
conf web "administrators: [admin]
users: {admin: {id: 1, password_file: $work/admin.pw}, alice: {id: 1001, password_file: $work/alice.pw}}"
export AFSCELL_CONFIG=$work/web.yaml
url=http://127.0.0.1:8780

# ask WHO EXPECTED-STATUS PATH [CURL-OPTIONS...]: body in $work/.body
ask() {
	local who=$1 want=$2 path=$3 got; shift 3
	got=$(curl -s --path-as-is -o "$work/.body" -w '%{http_code}' ${who:+-b "$work/$who.jar"} "$@" "$url$path")
	[ "$got" = "$want" ] || { echo "$path as ${who:-nobody}: $got, not $want"; head -c 2000 "$work/.body"; return 1; }
}
post() { local who=$1 want=$2 path=$3 data=$4; ask "$who" "$want" "$path" -H "Origin: $url" -H "X-CSRF-Token: $(cat "$work/$who.csrf" 2>/dev/null)" -d "$data"; }
sign_in() { # WHO JSON
	ask "" 200 /api/v1/session -c "$work/$1.jar" -H "Origin: $url" -d "$2" && jq -r .csrf "$work/.body" >"$work/$1.csrf"
}
body() { jq -e "$1" "$work/.body" || { cat "$work/.body"; return 1; }; }

check "up brings the console" "$afscell" up
check "status tells its address" sh -c "'$afscell' status --json | jq -e '.console == \"$url\"'"
check "it answers" ask "" 200 /healthz
check "... and every role runs" ask "" 200 /readyz
check "the page comes with a strict policy" sh -c "curl -si $url/ | tr -d '\r' | grep -q \"^Content-Security-Policy: default-src 'none'; script-src 'self'\""
check "metrics have a series for each counter" sh -c "curl -s $url/metrics | grep -c '^# HELP' | awk '\$1 < 60 { exit 1 }'"
check "another Host is refused" ask "" 421 / -H "Host: evil.example"

link=$("$afscell" console link)
check "a link signs in" sign_in owner "{\"link\":\"${link##*/}\"}"
check "... as an administrator" body .administrator
check "... once" ask "" 401 /api/v1/session -H "Origin: $url" -d "{\"link\":\"${link##*/}\"}"
check "a wrong password is refused" ask "" 401 /api/v1/session -H "Origin: $url" -d '{"user":"alice","password":"wrong"}'
check "... as a user that is not there is, with the same words" sh -c "cp '$work/.body' '$work/.wrong' && curl -s -o '$work/.nobody' -H 'Origin: $url' -d '{\"user\":\"nobody\",\"password\":\"wrong\"}' $url/api/v1/session && cmp '$work/.wrong' '$work/.nobody'"
check "admin signs in" sign_in admin '{"user":"admin","password":"admins-long-password"}'
check "alice signs in" sign_in alice '{"user":"alice","password":"alices-long-password"}'
check "... and is no administrator" body '.administrator == false'
check "the cookie is for no script and no other site" grep -q '^#HttpOnly_127.0.0.1' "$work/alice.jar"

everything() { # every path and command, as nobody and as alice, with and without the word and the origin
	local bad=0 p c
	ask admin 200 /api/v1/openapi.json && jq -r '.paths | to_entries[] | .key as $p | .value | keys[] | "\(.) \($p)"' "$work/.body" >"$work/verbs"
	[ "$(wc -l <"$work/verbs")" -gt 60 ] || { echo "too few verbs"; return 1; }
	while read -r method p; do
		case $method:$p in
		get:/api/*) ask "" 401 "$p" || bad=1 ;;
		post:/api/v1/session) ask "" 403 "$p" -d '{}' || bad=1 ;;
		post:*)
			ask "" 403 "$p" -d '{}' || bad=1
			ask "" 401 "$p" -H "Origin: $url" -d '{}' || bad=1
			ask admin 403 "$p" -d '{}' -H "X-CSRF-Token: $(cat "$work/admin.csrf")" || bad=1
			ask admin 403 "$p" -d '{}' -H "X-CSRF-Token: $(cat "$work/admin.csrf")" -H 'Origin: http://evil.example' || bad=1
			ask admin 403 "$p" -d '{}' -H "Origin: $url" || bad=1
			ask admin 403 "$p" -d '{}' -H "Origin: $url" -H "X-CSRF-Token: $(cat "$work/alice.csrf")" || bad=1 ;;
		esac
		case $method:$p in
		get:/api/v1/log | get:/api/v1/audit | get:/api/v1/config) ask alice 403 "$p" || bad=1 ;;
		post:/api/v1/config) post alice 403 "$p" x || bad=1 ;;
		post:/api/v1/run/vos/* | post:/api/v1/run/pts/*) ;;
		post:/api/v1/run/*) post alice 404 "$p" '{}' || bad=1 ;;
		esac
	done <"$work/verbs"
	return $bad
}
check "no verb is done for nobody, for another origin, without the word; nor an administrator's for alice" everything
check "admin makes a volume with his own token" post admin 200 /api/v1/run/vos/create '{"server":"127.0.0.1","partition":"a","name":"made"}'
check "alice may not, says the server" post alice 409 /api/v1/run/vos/create '{"server":"127.0.0.1","partition":"a","name":"hers"}'
check "who has a link is nobody to the servers" post owner 409 /api/v1/run/vos/create '{"server":"127.0.0.1","partition":"a","name":"his"}'
check "... but may do what root may" post owner 200 /api/v1/run/user/list '{}'
check "alice may look" post alice 200 /api/v1/run/vos/listvldb '{}'
check "the cell's key is lent to nobody" post admin 400 /api/v1/run/vos/listvldb '{"localauth":true}'
check "no directory of the machine is named" post admin 400 /api/v1/run/key/rotate '{"export":"/tmp"}'
check "what is no JSON is refused" post admin 400 /api/v1/run/vos/listvldb '{"id":'
head -c 400000 /dev/zero | tr '\0' x >"$work/big"
check "a body that is too big is refused" ask admin 413 /api/v1/run/vos/listvldb -H "Origin: $url" --data-binary "@$work/big"
check "a header that is too big is refused" ask admin 431 / -H "X-Big: $(head -c 60000 /dev/zero | tr '\0' 'x')"
traversal() { local p; for p in /../etc/passwd /%2e%2e/%2e%2e/etc/passwd /app.css/../../etc/passwd //etc/passwd '/app.js%00.html' /api/v1/../../etc/passwd; do ask alice 404 "$p" || return 1; done; }
check "no path leads to a file" traversal
check "who did it from where stands in the trail" sh -c "jq -se 'any(.who == \"admin (console, 127.0.0.1)\" and .call == \"vos create\" and .result == \"OK\")' '$work/web/log/audit.jsonl'"
check "... and what was refused" sh -c "jq -se 'any(.who == \"alice (console, 127.0.0.1)\" and .call == \"vos create\" and .result != \"OK\")' '$work/web/log/audit.jsonl'"
check "live status comes as events" sh -c "curl -sN --max-time 20 -b '$work/alice.jar' $url/api/v1/live | sed -n '/^data: /{s///p;q}' | jq -e '.cell == \"web.test\"'"
check "a configuration is judged" sh -c "curl -s -b '$work/admin.jar' -H 'Origin: $url' -H \"X-CSRF-Token: \$(cat '$work/admin.csrf')\" -d 'rols: {}' $url/api/v1/config | jq -e '.valid == false and (.problems | test(\"did you mean\"))'"
check "signing out ends the session" post alice 200 /api/v1/session/end '{}'
check "... for good" ask alice 401 /api/v1/session
tries() { local i s; for i in 1 2 3 4 5 6 7; do s=$(curl -s -o /dev/null -w '%{http_code}' -H "Origin: $url" -d '{"user":"bob","password":"x"}' $url/api/v1/session); done; [ "$s" = 429 ]; }
check "guessing is stopped" tries
