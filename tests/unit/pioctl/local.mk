# SPDX-License-Identifier: BSD-2-Clause
check_PROGRAMS += tests/unit/pioctl/test_pioctl
TESTS += tests/unit/pioctl/test_pioctl
tests_unit_pioctl_test_pioctl_SOURCES = %reldir%/test_pioctl.c
tests_unit_pioctl_test_pioctl_LDADD = $(LIBS_TEST) client/pioctl/libpioctl.a $(LIBS_PROTO) \
	rx/sec/librxsec.a cell/base/libbase.a $(CRYPTO_LIBS)
