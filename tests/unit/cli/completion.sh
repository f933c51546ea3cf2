#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The completion script offers commands, options and values by what they are; and the tools answer to the names that
# the installation links to.
top=${top_srcdir:-$(readlink -f "$(dirname "$0")/../../..")}
afscell=$(readlink -f "${AFSCELL:-${top_builddir:-$top/build}/afscell}")
[ -x "$afscell" ] || { echo "1..0 # SKIP $afscell is not built"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
result() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi; }
is() { [ "$1" = "$2" ] || { echo "# \"$1\" is not \"$2\""; false; }; result $? "$3"; }
"$afscell" help --completion >"$work/script"
. "$work/script"
t() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _afscell; echo "${COMPREPLY[*]}"; }
cd "$work" || exit 1
mkdir place; touch place/file thing

echo 1..22
bash -n "$work/script"; result $? "the script is one of bash"
is "$(t afscell vo)" "vos" "suites"
is "$(t afscell vos exa)" "examine" "commands of a suite"
is "$(t afscell vos listvol -q)" "-quiet" "options of a command"
is "$(t afscell vos restore h a n -overwrite f)" "full" "a choice, after its option"
is "$(t afscell rxdebug h 7000 -onlyauth '')" "none clear auth crypt" "... all of them"
is "$(t afscell bos create h i c)" "cron" "a choice, by position"
is "$(t afscell import -o thi)" "thing" "a file, after a letter"
is "$(t afscell fs setacl pl)" "place" "a directory"
is "$(t afscell pts adduser a '')" "" "nothing where nothing is known"
is "$(t afscell up --config th)" "thing" "the configuration"
for name in aklog bos fs klog klog.krb5 pts rxdebug tokens udebug unlog vos; do
	ln -s "$afscell" "$work/$name"
	"./$name" --help | head -n 1 | grep -q .; result $? "it answers to the name $name"
done
