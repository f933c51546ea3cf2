# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += rx/rpc/librpc.a
rx_rpc_librpc_a_SOURCES = %reldir%/rpc.h
