#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two cells whose realms trust each other: a user of one comes to the other, registers himself, and is name@realm
# there, with the rights that are given to that name; and nobody comes from a realm that is not trusted.
. "$(dirname "$0")/lib.sh"
private "$@"
for p in kinit kvno; do type -P $p >/dev/null || { echo "1..0 # SKIP needs the program $p"; exit 0; }; done
plan 34
echo secret >"$work/pw"
echo 'a password that both realms know' >"$work/shared"
conf a "listen: [127.0.0.1]
realm: {dotted: false}
trusts: {B.TEST: {kdc: '127.0.0.2:8088', password_file: $work/shared}}
administrators: [admin]
users: {admin: {id: 1, password_file: $work/pw}, alice: {id: 1001, password_file: $work/pw}}"
conf b "listen: [127.0.0.2]
trusts: {A.TEST: {kdc: '127.0.0.1:8088', password_file: $work/shared}}
administrators: [admin]
users: {admin: {id: 1, password_file: $work/pw}, bob: {id: 1002, password_file: $work/pw}}"
# c, whose realm nobody trusts, but which trusts a; its own name for the users of A is that of its own
conf c "listen: [127.0.0.3]
trusts: {A.TEST: {kdc: '127.0.0.1:8088', password_file: $work/pw2}}
realm: {local: [A.TEST]}
administrators: [admin]
users: {admin: {id: 1, password_file: $work/pw}}"
echo 'another password, which realm A does not know' >"$work/pw2"
n=7100 # tools find each client on a port of its own
for x in a b c; do n=$((n + 1)); sed -i "s/client: {mount: none}/client: {mount: none, tools_port: $n}/" "$work/$x.yaml"; done
at() { # at CELL CMD...: with the configuration of that cell, and the profile of the realm of the user's (A)
	local cell=$1; shift
	AFSCELL_CONFIG=$work/$cell.yaml KRB5_CONFIG=$work/${PROFILE:-a}/run/krb5.conf KRB5CCNAME=FILE:$work/cc "$@"
}
up() { at "$1" "$afscell" up; }
login() { echo secret | at a kinit "$1"; }

check "cell a comes up and trusts B.TEST" says 'realm B.TEST' up a
check "cell b comes up and trusts A.TEST" says 'realm A.TEST' up b
check "... once" sh -c "AFSCELL_CONFIG=$work/b.yaml '$afscell' up | grep 'nothing to change'"
check "the profile of A names B's key server" grep -q '127.0.0.2:8088' "$work/a/run/krb5.conf"
check "the group for B's guests is made" at a "$afscell" pts examine system:authuser@b.test -localauth
check "alice of A logs in at home" login alice
check "... and gets a ticket for b" at a kvno afs/b.test@B.TEST
check "b's aklog registers her" says 'first-time registration of alice@a.test at b.test: id [0-9]+' at b "$afscell" aklog
check "... once" sh -c "! AFSCELL_CONFIG=$work/b.yaml KRB5_CONFIG=$work/a/run/krb5.conf KRB5CCNAME=FILE:$work/cc '$afscell' aklog | grep registration"
check "... and holds a token" says 'alice@A.TEST' at b "$afscell" tokens --names
check "she is a member of the guests of A" says 'system:authuser@a.test' at b "$afscell" pts membership alice@a.test -localauth
check "she is nobody's administrator" fails 'not permitted' at b "$afscell" pts createuser eve
check "she cannot make an entry for another" fails 'not permitted|denied|bad' at b "$afscell" pts createuser mallory@a.test
check "b gives rights to the name" at b "$afscell" pts adduser alice@a.test system:administrators -localauth
check "... which still makes no foreign administrator" fails 'not permitted' at b "$afscell" pts createuser eve
check "a user of b is not taken for his namesake of a" sh -c "AFSCELL_CONFIG=$work/b.yaml '$afscell' user add alice --id 1001 --password-file $work/pw && AFSCELL_CONFIG=$work/b.yaml '$afscell' pts examine 1001 -localauth | grep 'Name: alice,'"
check "the administrator of A is a guest in b" login admin
check "... registers" says 'admin@a.test' at b "$afscell" aklog
check "... and administers nothing there" fails 'not permitted' at b "$afscell" pts createuser eve
check "... but everything at home" at a "$afscell" pts createuser eve
check "without prdb nothing is registered" sh -c "echo secret | KRB5_CONFIG=$work/a/run/krb5.conf KRB5CCNAME=FILE:$work/cc2 kinit alice && AFSCELL_CONFIG=$work/b.yaml KRB5_CONFIG=$work/a/run/krb5.conf KRB5CCNAME=FILE:$work/cc2 '$afscell' aklog -noprdb -d 2>&1 | grep 'Ticket of alice@A.TEST'"
PROFILE=b check "klog gets a token by password" sh -c "echo secret | AFSCELL_CONFIG=$work/b.yaml KRB5_CONFIG=$work/b/run/krb5.conf '$afscell' klog bob -pipe"
PROFILE=b check "... for him" says "AFS ID 1002. rxkad tokens for b.test" at b "$afscell" tokens
check "... and no ticket stays" sh -c "! KRB5CCNAME=FILE:$work/nocc klist"
check "a wrong password gets none" sh -c "echo wrong | AFSCELL_CONFIG=$work/b.yaml KRB5_CONFIG=$work/b/run/krb5.conf '$afscell' klog bob -pipe; [ \$? = 1 ]"
check "unlog of a cell without a token is told" fails 'no token for nowhere.test' at b "$afscell" unlog -cell nowhere.test
check "unlog" sh -c "AFSCELL_CONFIG=$work/b.yaml '$afscell' unlog b.test && ! AFSCELL_CONFIG=$work/b.yaml '$afscell' tokens | grep b.test"

# trust is a secret shared, and can be withdrawn
check "cell c comes up and would trust A.TEST" up c
check "... but with another secret than A's, nobody comes" sh -c "! KRB5_CONFIG=$work/c/run/krb5.conf KRB5CCNAME=FILE:$work/cc kvno afs/c.test@C.TEST"
# c counts the users of A as its own, once A trusts it with the same secret: also while both run
sed -i "s|^trusts: .*|trusts: {B.TEST: {kdc: '127.0.0.2:8088', password_file: $work/shared}, C.TEST: {kdc: '127.0.0.3:8088', password_file: $work/pw2}}|" "$work/a.yaml"
check "a running cell trusts another realm" says 'realm C.TEST.*trusted' up a
check "a user of a local realm is the cell's own" sh -c "echo secret | KRB5_CONFIG=$work/a/run/krb5.conf KRB5CCNAME=FILE:$work/cc4 kinit admin && AFSCELL_CONFIG=$work/c.yaml KRB5_CONFIG=$work/a/run/krb5.conf KRB5CCNAME=FILE:$work/cc4 '$afscell' pts createuser made"
check "... with his rights and no realm behind his name" says 'owner: admin' sh -c "AFSCELL_CONFIG=$work/c.yaml KRB5_CONFIG=$work/a/run/krb5.conf KRB5CCNAME=FILE:$work/cc4 '$afscell' pts creategroup mine && AFSCELL_CONFIG=$work/c.yaml '$afscell' pts examine mine -localauth"
sed -i '/^trusts/d' "$work/b.yaml"
check "a realm that is no longer named is no longer trusted" says 'realm A.TEST.*no longer trusted' up b
check "... and nobody comes from it" sh -c "echo secret | KRB5_CONFIG=$work/a/run/krb5.conf KRB5CCNAME=FILE:$work/cc3 kinit alice && ! KRB5_CONFIG=$work/a/run/krb5.conf KRB5CCNAME=FILE:$work/cc3 kvno afs/b.test@B.TEST"
