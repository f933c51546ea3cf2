# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/cli/libcli.a
cell_cli_libcli_a_SOURCES = %reldir%/acl_text.c %reldir%/acl_text.h %reldir%/call.c %reldir%/cli.c %reldir%/cli.h %reldir%/completion.c %reldir%/commands.def %reldir%/fs.c %reldir%/fs.def %reldir%/fs_more.c %reldir%/help.c %reldir%/life.c %reldir%/keyring.c %reldir%/keyring.h %reldir%/login.c \
	%reldir%/handlers.h %reldir%/parse.c %reldir%/parse.h %reldir%/table.c %reldir%/tokens.c
cell_cli_libcli_a_SOURCES += %reldir%/debug.h %reldir%/doctor.c %reldir%/rxdebug.c %reldir%/udebug.c
cell_cli_libcli_a_SOURCES += %reldir%/import.c %reldir%/import.h %reldir%/import_mounts.c
# the administrators' suites
cell_cli_libcli_a_SOURCES += %reldir%/people.c %reldir%/people.def
cell_cli_libcli_a_SOURCES += %reldir%/pts.c %reldir%/pts.def %reldir%/pts.h %reldir%/pts_show.c %reldir%/pts_source.c \
	%reldir%/suite.c %reldir%/suite.h
cell_cli_libcli_a_SOURCES += %reldir%/vos.c %reldir%/vos.def %reldir%/vos.h %reldir%/vos_change.c %reldir%/vos_print.c \
	%reldir%/vos_show.c %reldir%/vos_sync.c %reldir%/vos_vldb.c
cell_cli_libcli_a_SOURCES += %reldir%/bos.c %reldir%/bos.def %reldir%/bos.h %reldir%/bos_salvage.c %reldir%/bos_show.c
cell_cli_libcli_a_SOURCES += %reldir%/bench.c %reldir%/bench.def %reldir%/bench.h %reldir%/bench_load.c %reldir%/bench_raw.c \
	%reldir%/bench_report.c %reldir%/bench_rx.def %reldir%/bench_rx.rpc %reldir%/bench_serve.c
cell_cli_libcli_a_SOURCES += %reldir%/bench_html.c %reldir%/bench_mount.c %reldir%/bench_mount.h %reldir%/bench_place.c %reldir%/bench_sheet.c \
	%reldir%/bench_tree.c %reldir%/bench_work.c
