#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What every file keeps to: a licence line, no blanks at line ends, Unix lines, a size one can read, nothing
# left to do.
top=${top_srcdir:-$(readlink -f "$(dirname "$0")/../..")}
cd "$top" || exit 99
files() {
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files -- "$@"
	else
		find . -type f | sed 's|^\./||' | grep -E '\.(c|h|def|rpc|mk|sh|ac|am)$'
	fi | grep -vE '^(tests/fuzz/corpus|tests/vectors)/'
}
code() { files '*.c' '*.h' '*.def' '*.rpc' '*.mk' '*.sh' configure.ac Makefile.am .ci/run etc/quickstart; }

n=0 failed=0
judge() { # judge SENTENCE BAD-LINES
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n - $1"
	else
		failed=1
		echo "not ok $n - $1"
		head -n 20 <<<"$2" | sed 's/^/# /'
	fi
}
echo 1..5
judge "every file says its licence in its first two lines" \
	"$(code | while read -r f; do head -n 2 "$f" | grep -q 'SPDX-License-Identifier: BSD-2-Clause' || echo "$f"; done)"
judge "no line ends in blanks or a carriage return" "$(code | xargs grep -nE '[[:space:]]+$' | cut -c1-120)"
judge "C is indented with tabs" "$(files '*.c' '*.h' | xargs grep -nE '^        [^ ]' | cut -c1-120)"
judge "no source file passes 1000 lines" \
	"$(files '*.c' '*.h' | grep -v '^tests/' | xargs wc -l | awk '$1 > 1000 && $2 != "total" { print $2 ": " $1 }')"
word='TO''DO|FIX''ME|XX''X' # in two pieces, so as not to find itself
judge "nothing is left to do" "$(code | xargs grep -nE "\\b($word)\\b" | grep -v 'mkdtemp\|mktemp\|mkstemp\|XXXXXX' | cut -c1-120)"
[ $failed = 0 ]
