# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += client/pioctl/libpioctl.a
client_pioctl_libpioctl_a_SOURCES = %reldir%/paths.c %reldir%/pioctl.c %reldir%/pioctl.h %reldir%/rmtsys.c
