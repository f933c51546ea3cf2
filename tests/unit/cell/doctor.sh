#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# doctor finds what is wrong with a cell, says what to do, and finds nothing bad where nothing is.
. "$(dirname "$0")/lib.sh"
private "$@"
type -P jq >/dev/null || { echo "1..0 # SKIP needs the program jq"; exit 0; }
plan 12
conf ill 'administrators: [admin]
users: {admin: {id: 1}}'
export AFSCELL_CONFIG=$work/ill.yaml
bad() { "$afscell" doctor --json >"$work/.json"; [ $? = 1 ] && jq -e "map(select(.level == \"bad\")) | length == 1 and (.[0] | .check == \"$1\" and (.text | test(\"$2\")) and (.do | length > 5))" "$work/.json" || { cat "$work/.json"; return 1; }; }
good() { "$afscell" doctor --json >"$work/.json" && jq -e 'all(.level != "bad")' "$work/.json" || { cat "$work/.json"; return 1; }; }

check "a cell that is down is bad" sh -c "'$afscell' doctor --json | jq -e 'any(.check == \"cell\" and .level == \"bad\" and .do == \"start it: afscell up\")'"
check "... and has no key yet" sh -c "'$afscell' doctor --json | jq -e 'any(.check == \"keys\" and .level == \"bad\")'"
check "the cell comes up" "$afscell" up
check "a cell that runs is good" good
check "... with every role" jq -e '[.[] | select(.check == "role") | .text] | index("ptserver is running") and index("fileserver is running") and index("kdc is running")' "$work/.json"
check "for people, a line each" says '^cell +good +ill.test runs' "$afscell" doctor
check "a role that was stopped is bad" sh -c "'$afscell' bos stop localhost vlserver -wait -localauth"
check "... and named" bad role 'vlserver is stopped'
"$afscell" bos start localhost vlserver -localauth
check "a keytab that others can read is bad" chmod 644 "$work/ill/keys/afs.keytab"
check "... and named" bad keys 'can be read by others'
chmod 600 "$work/ill/keys/afs.keytab"
check "a key that could be retired is a warning" sh -c "'$afscell' key rotate && '$afscell' doctor --json | jq -e 'any(.check == \"keys\" and .level == \"warning\" and (.do | test(\"key retire\")))'"
check "... and good again" good
