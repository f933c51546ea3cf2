# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/cli/libcli.a
cell_cli_libcli_a_SOURCES = %reldir%/cli.c %reldir%/cli.h %reldir%/commands.def %reldir%/fs.c %reldir%/help.c %reldir%/life.c \
	%reldir%/parse.c %reldir%/parse.h %reldir%/table.c %reldir%/tokens.c
