# SPDX-License-Identifier: BSD-2-Clause
# The console.  Its pages are taken into assets.o by the assembler, so that needs them to be there.
noinst_LIBRARIES += webui/libwebui.a
webui_libwebui_a_SOURCES = %reldir%/api.c %reldir%/api.h %reldir%/assets.c %reldir%/assets.def %reldir%/assets.h \
	%reldir%/http.c %reldir%/http.h %reldir%/metrics.c %reldir%/page.c %reldir%/page.h %reldir%/session.c %reldir%/session.h %reldir%/web.h
webui_libwebui_a_CPPFLAGS = $(AM_CPPFLAGS) $(MHD_CFLAGS) -DWEBUI_ASSETS='"$(srcdir)/webui/assets"'
WEBUI_ASSETS = webui/assets/index.html webui/assets/app.css webui/assets/app.js webui/assets/kit.js webui/assets/pages.js webui/assets/files.js webui/assets/icon.svg
EXTRA_DIST += $(WEBUI_ASSETS)
webui/libwebui_a-assets.$(OBJEXT): $(WEBUI_ASSETS)
