# SPDX-License-Identifier: BSD-2-Clause
# The console in a real browser (Debian: chromium, python3).  Not part of check; pictures are left in browser-shots/.
.PHONY: check-browser
check-browser: afscell
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' $(srcdir)/tests/browser/console.sh
EXTRA_DIST += tests/browser/console.sh tests/browser/flows.py tests/browser/chromium.py
