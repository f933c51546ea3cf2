# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += rx/core/librxcore.a
rx_core_librxcore_a_SOURCES = %reldir%/core.h %reldir%/stats.def
