# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/cli/libcli.a
cell_cli_libcli_a_SOURCES = 
