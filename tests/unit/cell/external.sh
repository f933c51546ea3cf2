#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A cell whose realm is not its own: users are entries here and principals there, the key comes in a keytab, and a new
# one is taken without a restart while tokens of the old one go on.
. "$(dirname "$0")/lib.sh"
private "$@"
for p in kinit kvno kadmin.local jq; do type -P $p >/dev/null || { echo "1..0 # SKIP needs the program $p"; exit 0; }; done
plan 18
echo secret >"$work/pw"
# a realm to be external: that of another cell, whose administrator makes the principal
conf far "listen: [127.0.0.2]
roles: {client: {enabled: false}}
users: {admin: {id: 1, password_file: $work/pw}, alice: {id: 1001, password_file: $work/pw}}"
conf near "realm: {mode: external, name: FAR.TEST, keytab: $work/near.keytab, krb5_conf: $work/far/run/krb5.conf}
administrators: [admin]
users: {admin: {id: 1}, alice: {id: 1001}}"
kadmin() { KRB5_CONFIG=$work/far/run/krb5.conf KRB5_KDC_PROFILE=$work/far/realm/kdc.conf kadmin.local -r FAR.TEST -q "$1"; }
as() { local u=$1; shift; KRB5_CONFIG=$work/far/run/krb5.conf KRB5CCNAME=FILE:$work/cc.$u "$@"; }
login() { echo secret | as "$1" kinit "$1"; }
key() { kadmin "$1" && kadmin "ktadd -norandkey -k $work/near.keytab.new afs/near.test" && mv "$work/near.keytab.new" "$work/near.keytab"; }

check "the realm comes up" "$afscell" up --config "$work/far.yaml"
check "its administrator makes the key of the cell" key 'addprinc -randkey -e aes256-cts-hmac-sha1-96:normal afs/near.test'
export AFSCELL_CONFIG=$work/near.yaml
check "the cell comes up" "$afscell" up
check "alice logs in" login alice
check "... and is alice here" sh -c "KRB5_CONFIG=$work/far/run/krb5.conf KRB5CCNAME=FILE:$work/cc.alice '$afscell' pts creategroup alice:own"
check "admin administers" sh -c "echo secret | KRB5_CONFIG=$work/far/run/krb5.conf KRB5CCNAME=FILE:$work/cc.admin kinit admin && KRB5_CONFIG=$work/far/run/krb5.conf KRB5CCNAME=FILE:$work/cc.admin '$afscell' pts createuser x1"
check "user add enters a user and names the realm" says 'id 77; his principal is kept by the external realm' "$afscell" user add bob --id 77
check "... once" fails 'there is a user bob already' "$afscell" user add bob
check "... and takes no password" fails 'keeps its own passwords' "$afscell" user add carol --password secret
check "... which leaves no entry" fails 'no such user' "$afscell" pts examine carol -localauth
check "user passwd is the realm's matter" fails 'change its principals there' "$afscell" user passwd bob
check "user remove takes the entry" sh -c "'$afscell' user remove bob && ! '$afscell' pts examine bob -localauth"
check "key rotate is the realm's matter, and says how" fails 'ktadd.*key reload' "$afscell" key rotate
check "the realm makes another key" key 'cpw -randkey -keepold -e aes256-cts-hmac-sha1-96:normal afs/near.test'
check "key reload takes it without a restart" sh -c "'$afscell' key reload --json | jq -e '.keys | map(.kvno) == [2, 1]'"
check "a ticket of the old one goes on" as alice "$afscell" pts examine alice
check "... and one of the new one is taken" sh -c "echo secret | KRB5_CONFIG=$work/far/run/krb5.conf KRB5CCNAME=FILE:$work/cc.new kinit alice && KRB5_CONFIG=$work/far/run/krb5.conf KRB5CCNAME=FILE:$work/cc.new kvno afs/near.test | grep 'kvno = 2' && KRB5_CONFIG=$work/far/run/krb5.conf KRB5CCNAME=FILE:$work/cc.new '$afscell' pts creategroup alice:new"
echo damaged >"$work/near.keytab"
check "a keytab that is damaged leaves the keys as they are" sh -c "! '$afscell' key reload && KRB5_CONFIG=$work/far/run/krb5.conf KRB5CCNAME=FILE:$work/cc.alice '$afscell' pts examine alice"
