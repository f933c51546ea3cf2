#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tokens of rxgk, from a Kerberos ticket to calls that know the caller: got, shown, used, dropped; and never
# replaced by weaker ones when they were asked for by name.
. "$(dirname "$0")/lib.sh"
private "$@"
for p in kinit kvno; do type -P $p >/dev/null || { echo "1..0 # SKIP needs the program $p"; exit 0; }; done
plan 31
probe=$(readlink -f "$(dirname "$afscell")/tests/unit/suites/negotiate")
echo secret >"$work/pw"
conf a "listen: [127.0.0.1]
administrators: [admin]
users: {admin: {id: 1, password_file: $work/pw}, alice: {id: 1001, password_file: $work/pw}}"
export AFSCELL_CONFIG=$work/a.yaml KRB5_CONFIG=$work/a/run/krb5.conf
login() { export KRB5CCNAME=FILE:$work/cc.$1; echo secret | kinit "$1" >/dev/null; }
without() { local bad=$1; shift; ! "$@" | grep -E -- "$bad"; }
creator() { "$afscell" pts examine "$1" -localauth | grep -E "creator: $2"; }

check "the cell comes up" "$afscell" up
login admin
check "aklog gets tokens" "$afscell" aklog
check "... of rxgk, level crypt" says 'AFS ID 1\) rxgk crypt tokens for a.test \[Expires' "$afscell" tokens
check "... and of rxkad, for tools that know no other" says 'AFS ID 1\) rxkad tokens for a.test \[Expires' "$afscell" tokens
check "... and says which connections use" says '"class": "rxgk"' "$afscell" aklog --json
check "with -d it says so in words" says 'Connections use rxgk, level crypt' "$afscell" aklog -d
check "unlog drops both" sh -c "'$afscell' unlog && ! '$afscell' tokens | grep a.test"

check "aklog -class rxgk gets one of rxgk" "$afscell" aklog -class rxgk
check "... and no other" without rxkad "$afscell" tokens
check "the cache manager's rxgk token proves an administrator" "$afscell" pts createuser made-by-token
check "... as himself" creator made-by-token admin
check "vos works with it" says 'afs|root|[Tt]otal' "$afscell" vos listvldb
check "bos works with it" "$afscell" bos status 127.0.0.1
"$afscell" unlog >/dev/null
sed -i 's/client: {mount: none}/client: {mount: none, security_class: rxgk}/' "$work/a.yaml"
check "a suite negotiates for itself where nobody holds a token" "$afscell" pts createuser made-by-ticket
check "... as the ticket's holder" creator made-by-ticket admin
login alice
check "alice is alice over rxgk" says 'AFS ID 1001\) rxgk crypt' sh -c "'$afscell' aklog -class rxgk && '$afscell' tokens"
check "... who administers nothing" fails 'not permitted' "$afscell" pts createuser eve
check "... but makes groups of her own" sh -c "'$afscell' pts creategroup alice:friends && '$afscell' pts examine alice:friends -localauth | grep 'owner: alice'"
"$afscell" unlog >/dev/null
sed -i 's/, security_class: rxgk//' "$work/a.yaml"

check "aklog -class rxkad gets one of rxkad" "$afscell" aklog -class rxkad
check "... and no other" without rxgk "$afscell" tokens
check "a class that there is not is refused" sh -c "'$afscell' aklog -class rx5; [ \$? = 2 ]"
check "without tickets, the reason is told" fails 'no Kerberos tickets' env KRB5CCNAME=FILE:$work/none "$afscell" aklog -class rxgk

# what no client of ours sends
check "a GSS token of garbage gets a reason and no token" "$probe" garbage 127.0.0.1
check "no GSS token at all gets none either" "$probe" empty 127.0.0.1
check "one that is too large is refused" "$probe" oversize 127.0.0.1
check "one for another service is refused" "$probe" other 127.0.0.1 a.test
check "a ticket cut short is refused" "$probe" cut 127.0.0.1 a.test
check "encryption types that nobody has are refused" "$probe" etypes 127.0.0.1 a.test
check "a second pass that was never asked for is refused" "$probe" second 127.0.0.1 a.test

# a cell that offers no rxgk
key() { KRB5_KDC_PROFILE=$work/a/realm/kdc.conf kadmin.local -r A.TEST "$@"; }
login admin
kdestroy >/dev/null 2>&1; login admin
"$afscell" down >/dev/null 2>&1; "$afscell" up >/dev/null 2>&1
mv "$work/a/keys/afs-rxgk.keytab" "$work/kept"
check "a server without the service's key refuses, and rxgk by name is not replaced" fails 'refuses the ticket' "$afscell" aklog -class rxgk
check "... nor silently in favour of rxkad" fails 'refuses the ticket' "$afscell" aklog
