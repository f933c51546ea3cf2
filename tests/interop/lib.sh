# SPDX-License-Identifier: BSD-2-Clause
# What the interoperability scripts share: TAP, namespaces, a cell of their own.  Source it first.
#
#   plan N                       how many checks follow
#   check "sentence" CMD...      ok when CMD succeeds; its output is shown when it does not
#   ns_make NAME [IP]            a network namespace with lo (and IP/24 on a bridge br0)
#   cell_make, cell_up, login    a cell of our own with all state in one directory
#   stock_tools                  what makes stock OpenAFS tools see it
#
# Each script runs itself again inside a network and a mount namespace of its own (enter), so it has
# every port and mount point for itself, and all is gone when it ends.

top=${top_srcdir:-$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")}
afscell=${AFSCELL_BIN:-${top_builddir:-$top/build}/afscell}
here=$top/tests/interop

# enter: come back inside private namespaces (network, mounts, processes).
enter() {
	[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 0; }
	[ -c /dev/fuse ] || { echo "1..0 # SKIP needs /dev/fuse"; exit 0; }
	[ -z "${INTEROP_INSIDE-}" ] || { inside; return; }
	local p
	for p; do
		type -P "$p" >/dev/null || { echo "1..0 # SKIP needs the program $p"; exit 0; }
	done
	local how=(unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private)
	"${how[@]}" true 2>/dev/null || { echo "1..0 # SKIP may not make namespaces"; exit 0; }
	INTEROP_INSIDE=1 exec "${how[@]}" "$0"
}

inside() {
	ip link set lo up
	work=$(mktemp -d /var/tmp/afscell-interop.XXXXXX)
	mount -t tmpfs -o size=4g,mode=755 tmpfs "$work"
	trap leave EXIT
}

leave() {
	local status=$?
	cd /
	[ -z "${cell_dir-}" ] || "$afscell" down --config "$cell_dir/afscell.yaml" >/dev/null 2>&1
	umount -l "$work" 2>/dev/null
	rmdir "$work" 2>/dev/null
	exit $status
}

tap_n=0 tap_bad=0
plan() { echo "1..$1"; }
note() { sed 's/^/# /'; }
result() { # result STATUS SENTENCE [OUTPUT-FILE]
	tap_n=$((tap_n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_n - $2"
	else
		tap_bad=$((tap_bad + 1))
		echo "not ok $tap_n - $2"
		[ -z "${3-}" ] || tail -n 30 "$3" | note
	fi
}
check() {
	local what=$1 out=$work/check.out status; shift
	"$@" >"$out" 2>&1; status=$?
	result $status "$what" "$out"
	return $status
}
refused() { ! "$@"; }
bail() { echo "Bail out! $*"; exit 1; }

# cell_make NAME DIR [ADDRESS [MORE-YAML]]: users admin (an administrator), alice and bob with the
# password "secret", volumes open (anyone may do all), alice (only she may write), at these paths.
cell_make() {
	mkdir -p "$2/afs"
	echo secret >"$2/password"
	cat >"$2/afscell.yaml" <<-Y
	cell: $1
	state: $2/state
	listen: [${3:-127.0.0.1}]
	client: {mount: $2/afs}
	administrators: [admin]
	users:
	  admin: {id: 1, password_file: $2/password}
	  alice: {id: 1001, password_file: $2/password}
	  bob: {id: 1002, password_file: $2/password}
	volumes:
	  open: {mount: open, acl: {system:anyuser: all}}
	  alice: {mount: alice, owner: alice, acl: {alice: all, system:anyuser: rl}}
	Y
	[ -z "${4-}" ] || printf '%s\n' "$4" >>"$2/afscell.yaml"
}
cell_up() {
	cell_dir=$1
	export AFSCELL_CONFIG=$1/afscell.yaml
	"$afscell" up --config "$1/afscell.yaml" >"$1/up.out" 2>&1 || { note <"$1/up.out"; bail "the cell did not come up"; }
	eval "$("$afscell" env --config "$1/afscell.yaml")"
}

# stock_tools DIR: make stock OpenAFS tools in this mount namespace see the cell of DIR.
stock_tools() {
	"$afscell" env --config "$1/afscell.yaml" --openafs "$1/openafs" >/dev/null || bail "env --openafs failed"
	mkdir -p /etc/openafs
	mount --bind "$1/openafs" /etc/openafs || bail "cannot bind /etc/openafs"
}

# login USER: a ticket for USER in a cache of this shell's (KRB5CCNAME).
login() {
	export KRB5CCNAME=FILE:$work/cc.$1
	echo secret | kinit "$1" >/dev/null
}

# as_user UID CMD...: run as another local user, with the environment as it is.
as_user() { local uid=$1; shift; setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"; }

# same_tree A B: same names, kinds, contents, modes and link targets.
tree_of() { (cd "$1" && find . \( -type l -printf '%P|l|%l\n' \) -o \( -type f -printf '%P|f|%m|' -exec sh -c 'sha256sum <"$1"' _ {} \; \) -o -printf '%P|%y|%m\n' | sort); }
same_tree() { diff <(tree_of "$1") <(tree_of "$2"); }
