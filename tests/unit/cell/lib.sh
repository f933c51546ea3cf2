# SPDX-License-Identifier: BSD-2-Clause
# For the scripts of this folder: TAP, and cells in namespaces of their own.  Source it first.
#
#   private "$@"             come back in a network and mount namespace of its own (skip when not allowed)
#   plan N                   how many checks follow
#   check "sentence" CMD...  ok when CMD succeeds; its output is shown when it does not
#   fails PATTERN CMD...     CMD fails with status 1, stdout and stderr match PATTERN, and nothing crashed
#   conf NAME [MORE-YAML]    $work/NAME.yaml: a cell without mount, state in $work/NAME

top=${top_srcdir:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../../..")}
afscell=$(readlink -f "${AFSCELL:-${top_builddir:-$top/build}/afscell}")

private() {
	if [ -n "${CELL_TEST_INSIDE-}" ]; then
		ip link set lo up
		work=$(mktemp -d /tmp/afscell-cell.XXXXXX)
		mount -t tmpfs -o size=512m,mode=755 tmpfs "$work"
		cd "$work" || exit 99
		trap leave EXIT
		unset AFSCELL_CONFIG AFSCELL_SOCKET KRB5_CONFIG KRB5CCNAME
		return
	fi
	[ -x "$afscell" ] || { echo "1..0 # SKIP $afscell is not built"; exit 0; }
	local how=(unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private)
	[ "$(id -u)" = 0 ] || how+=(--user --map-root-user)
	"${how[@]}" true 2>/dev/null || { echo "1..0 # SKIP may not make namespaces"; exit 0; }
	CELL_TEST_INSIDE=1 exec "${how[@]}" "$0" "$@"
}

leave() {
	local status=$? c
	cd /
	for c in "$work"/*.yaml; do "$afscell" down --config "$c" >/dev/null 2>&1; done
	umount -l "$work" 2>/dev/null
	rmdir "$work" 2>/dev/null
	[ $tap_bad = 0 ] || status=1
	exit $status
}

tap_n=0 tap_bad=0
plan() { echo "1..$1"; }
check() {
	local what=$1 out=$work/.check.out; shift
	tap_n=$((tap_n + 1))
	if "$@" >"$out" 2>&1; then
		echo "ok $tap_n - $what"
	else
		tap_bad=$((tap_bad + 1))
		echo "not ok $tap_n - $what"
		tail -n 30 "$out" | sed 's/^/# /'
	fi
}
fails() {
	local pattern=$1 text status; shift
	text=$("$@" 2>&1); status=$?
	printf '%s\n' "$text"
	[ $status = 1 ] || { echo "status $status, not 1"; return 1; }
	grep -Eq -- "$pattern" <<<"$text" || { echo "does not say: $pattern"; return 1; }
	[ "$(grep -c . <<<"$text")" -le "${LINES_MAX:-1}" ] || { echo "says more than ${LINES_MAX:-1} line"; return 1; }
}
says() { # says PATTERN CMD...: CMD succeeds and its output matches
	local pattern=$1 text; shift
	text=$("$@" 2>&1) || { printf '%s\n' "$text"; return 1; }
	printf '%s\n' "$text"
	grep -Eq -- "$pattern" <<<"$text"
}
absent() { # nothing there, and no process of ours
	local p
	for p; do [ ! -e "$p" ] || { echo "$p is there:"; ls -la "$p"; return 1; }; done
}
no_process() { ! pgrep -a 'afscell|krb5kdc'; } # in our own process namespace
conf() {
	cat >"$work/$1.yaml" <<-Y
	cell: ${CELL:-$1.test}
	state: $work/$1
	client: {mount: ${MOUNT:-none}}
	Y
	[ -z "${2-}" ] || printf '%s\n' "$2" >>"$work/$1.yaml"
}
