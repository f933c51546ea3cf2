# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/webui/test_session
TESTS += tests/unit/webui/test_session tests/unit/webui/console.sh
tests_unit_webui_test_session_SOURCES = %reldir%/test_session.c
tests_unit_webui_test_session_LDADD = $(LIBS_TEST) webui/libwebui.a $(LIBS_BASE) $(JANSSON_LIBS)
