#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# An include points down the list of doc/conventions.md §4, or stays in its folder.
top=${top_srcdir:-$(readlink -f "$(dirname "$0")/../..")}
cd "$top" || exit 99

# FOLDER HEIGHT, lowest first.  A folder may include from lower ones; from its own height only where
# `beside` says so.
heights='
cell/base 0
rx/sec 1
rx/xdr 1
cell/db 1
cell/conf 1
rx/core 2
cell/proto 3
cell/keys 3
cell/realm 3
rx/rpc 4
rx/io 5
fileserver 6
dbserver 6
client 6
webui 7
cell/admin 6
cell/bos 6
cell/cli 8
cell 8
'
# FROM TO: allowed although TO is not lower.
beside='
cell/keys cell/proto
cell/cli cell
cell cell/cli
'

sources() {
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files -- '*.c' '*.h' '*.def' '*.rpc'
	else
		find cell rx fileserver dbserver client webui -name '*.[ch]' -o -name '*.def' -o -name '*.rpc'
	fi | grep -E '^(cell|rx|fileserver|dbserver|client|webui)/'
}

folder='function folder(path, p, n) {
	n = split(path, p, "/")
	if (n == 1) return ""
	if (p[1] == "cell" || p[1] == "rx") return n == 2 ? p[1] : p[1] "/" p[2]
	return p[1]
}'

echo 1..4
# 1: the list names every folder
missing=$(sources | awk "$folder"'{ print folder($0) }' | sort -u | while read -r f; do
	grep -q "^$f [0-9]" <<<"$heights" || echo "$f"; done)
if [ -z "$missing" ]; then echo "ok 1 - every folder has its place in the list"
else echo "not ok 1 - every folder has its place in the list"; sed 's/^/# no place: /' <<<"$missing"; fi

includes() {
	sources | xargs grep -nHE '^[[:space:]]*#[[:space:]]*(include|define (XDR|RPC)_ROWS) "' |
		sed -E 's/^([^:]+):([0-9]+):.*"([^"]+)".*/\1 \2 \3/'
}

# 2: and points down
bad=$(includes | awk -v heights="$heights" -v beside="$beside" "$folder"'
	BEGIN {
		n = split(heights, h, "\n"); for (i = 1; i <= n; i++) if (split(h[i], w, " ") == 2) height[w[1]] = w[2]
		n = split(beside, h, "\n"); for (i = 1; i <= n; i++) if (split(h[i], w, " ") == 2) ok[w[1] " " w[2]] = 1
	}
	{
		from = folder($1); to = folder($3)
		if (to == "" || from == to || (from " " to) in ok) next
		if (!(to in height)) print $1 ":" $2 ": no such folder: " $3
		else if (height[to] >= height[from]) print $1 ":" $2 ": " from " may not include " $3
	}')
if [ -z "$bad" ]; then echo "ok 2 - every include points down the list or stays in its folder"
else echo "not ok 2 - every include points down the list or stays in its folder"; sed 's/^/# /' <<<"$bad"; fi

# 3: a folder has one header for outsiders
inner=$(includes | awk "$folder"'
	# Roofs of several rooms: what is meant for others.
	BEGIN {
		open["fileserver/fileserver.h"] = open["fileserver/volserver.h"] = open["fileserver/ports.h"] = 1
		open["fileserver/store/store.h"] = 1 # cell.c opens partitions, and declares volumes
		open["dbserver/dbserver.h"] = open["dbserver/negotiate.h"] = open["client/client.h"] = open["client/ports.h"] = 1
		open["fileserver/fs/stats.def"] = 1 # rows of what fileserver.h counts
		open["client/pioctl/pioctl.h"] = 1 # cell.c puts its service on a port
		open["fileserver/vol/dump.h"] = 1 # vos proves a dump before anything is deleted for it
	}
	{
		from = folder($1); to = folder($3)
		if ((to == "fileserver" || to == "dbserver" || to == "client") && from != to && !($3 in open))
			print $1 ":" $2 ": " $3 " is an inner header of " to
	}')
if [ -z "$inner" ]; then echo "ok 3 - outsiders see only the headers that are for them"
else echo "not ok 3 - outsiders see only the headers that are for them"; sed 's/^/# /' <<<"$inner"; fi

# 4: paths start at the top
relative=$(includes | awk '$3 != "config.h" && $3 !~ /\// { print $1 ":" $2 ": " $3 }')
if [ -z "$relative" ]; then echo "ok 4 - paths of includes start at the top"
else echo "not ok 4 - paths of includes start at the top"; sed 's/^/# /' <<<"$relative"; fi
[ -z "$missing$bad$inner$relative" ]
