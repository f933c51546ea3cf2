#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# "afscell bench rx" moves and counts what it says, at each level and with each way to the kernel; how fast is
# not looked at.
afscell=${AFSCELL_BIN:-${top_builddir:-build}/afscell}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
check() { # check SENTENCE CMD...
	local what=$1; shift
	n=$((n + 1))
	if "$@" >"$work/out" 2>&1; then echo "ok $n - $what"; else echo "not ok $n - $what"; tail -n 5 "$work/out" | sed 's/^/# /'; fi
}
bench() { "$afscell" bench rx --json -size 2M -calls 40 -clients 1,2 "$@" >"$work/json"; }
rows() { grep -c '"what"' "$work/json"; }
echo 1..8
check "everything is measured at every level" bench -level all
check "a row for each" test "$(rows)" = 26
check "without segmentation" bench -what fetch,store,inline,raw -plain
check "without batches" bench -what fetch,store,inline,raw -single
check "flows beside calls" bench -what mix -flows 3 -seconds 1
check "with Jain's index and the calls' latency" sh -c "grep -q jain '$work/json' && grep -q p99_us '$work/json'"
refused() { ! "$@" 2>/dev/null; }
check "a word it does not know is refused" refused bench -what fetsch
check "and a server that is not there" refused timeout 30 "$afscell" bench rx -to 127.0.0.1:9 -what inline
