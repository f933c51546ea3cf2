#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A real C project: unpacked, configured, built and tested in AFS, as root and as a user on a volume
# where only he may write; then the same on local disk, and both compared.
. "$(dirname "$0")/lib.sh"
# before there is no network but our own
[ -n "${tarball-}" ] || tarball=$("$here/source-package" gzip "${AFSCELL_SOURCES:-/var/tmp/afscell-sources}") ||
	{ echo "1..1"; echo "not ok 1 - the source package gzip can be had"; exit 1; }
export tarball
enter kinit make gcc
plan 12

cell_make build.test "$work/c"
cell_up "$work/c"

build() { # build DIR: everything in it
	cd "$1" && tar -xof "$tarball" --strip-components=1 && ./configure -q && make -s && make -s check
}
# what differs in any two runs: the directory's name inside files, and times
differ() { diff -r --no-dereference -x '*.log' -x '*.trs' -x 'config.log' -x 'config.status' "$1" "$2" >"$work/diff" 2>&1; cat "$work/diff"; }

# the same path in every run, so that results can be equal to the byte
at=$work/build
mkdir -p "$at" "$work/local"
run_in() { # run_in DIR LOG [UID]: build with DIR bound at the one path
	mount --bind "$1" "$at" || return 1
	if [ -n "${3-}" ]; then as_user "$3" bash -c "$(declare -f build); tarball='$tarball'; build '$at'"; else (build "$at"); fi >"$2" 2>&1
	local s=$?
	umount "$at"
	return $s
}
mkdir "$work/local/root" "$work/c/afs/build.test/open/src"
SECONDS=0
check "gzip builds and passes its tests on local disk" run_in "$work/local/root" "$work/log.local"; local_s=$SECONDS
SECONDS=0
check "gzip builds and passes its tests in AFS" run_in "$work/c/afs/build.test/open/src" "$work/log.afs" || tail -n 20 "$work/log.afs" | note; afs_s=$SECONDS
echo "# local $local_s s, AFS $afs_s s"
check "at least 500 files" sh -c "[ \$(find '$work/c/afs/build.test/open/src' | wc -l) -ge 500 ]"
check "the same tests passed" diff <(grep -E '^# (TOTAL|PASS|FAIL|ERROR|SKIP)' "$work/log.local") <(grep -E '^# (TOTAL|PASS|FAIL|ERROR|SKIP)' "$work/log.afs")
check "diff -r finds no difference" differ "$work/local/root" "$work/c/afs/build.test/open/src"

uid=1001 # as sites have it: the local uid is the AFS id
mkdir -p "$work/home"; chown $uid "$work/home"; export HOME=$work/home
export KRB5CCNAME=FILE:$work/home/cc
as_user $uid sh -c 'echo secret | kinit alice' >/dev/null
alice=$work/c/afs/build.test/alice
check "without a token he may not write there" refused as_user $uid touch "$alice/no"
check "the user gets a token from his ticket" as_user $uid "$afscell" aklog
check "afscell tokens shows it" sh -c "setpriv --reuid $uid --regid $uid --clear-groups '$afscell' tokens | grep build.test"
as_user $uid mkdir "$alice/src"
check "gzip builds and passes its tests as that user" run_in "$alice/src" "$work/log.user" $uid || tail -n 20 "$work/log.user" | note
check "diff -r finds no difference" differ "$work/local/root" "$alice/src"
check "another user cannot write there" refused as_user 12346 touch "$alice/src/no"
check "everything checks clean" "$afscell" check
