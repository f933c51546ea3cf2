# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/keys/libkeys.a
cell_keys_libkeys_a_SOURCES = %reldir%/keys.h
