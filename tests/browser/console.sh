#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The console in a headless Chromium, against a real cell in namespaces of its own.  "make check-browser" runs it; pictures of every
# page, light, dark and on a phone, are left in SHOTS (browser-shots/ in the build directory).
here=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")")
shots=${SHOTS:-${top_builddir:-$here/../../build}/browser-shots}
mkdir -p "$shots" && shots=$(readlink -f "$shots")
export SHOTS=$shots
. "$here/../unit/cell/lib.sh"
private "$@"
type -P python3 >/dev/null && python3 -c "import sys; sys.path.insert(0, '$here'); import chromium; sys.exit(not chromium.find())" || { echo "1..0 # SKIP needs python3 and chromium"; exit 0; }
echo admins-long-password >"$work/admin.pw"; echo alices-long-password >"$work/alice.pw"; chmod 600 "$work"/*.pw
conf web "administrators: [admin]
users: {admin: {id: 1, password_file: $work/admin.pw}, alice: {id: 1001, password_file: $work/alice.pw}}"
export AFSCELL_CONFIG=$work/web.yaml
"$afscell" up >"$work/up.out" 2>&1 || { cat "$work/up.out"; echo "Bail out! the cell does not start"; exit 1; }
PYTHONDONTWRITEBYTECODE=1 python3 "$here/flows.py" http://127.0.0.1:8780 "$("$afscell" console link)" "$SHOTS" || tap_bad=1
