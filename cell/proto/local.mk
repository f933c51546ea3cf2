# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/proto/libproto.a
cell_proto_libproto_a_SOURCES = %reldir%/abort.c %reldir%/abort.def %reldir%/abort.h %reldir%/fid.c \
	%reldir%/fid.def %reldir%/fid.h \
	%reldir%/cb.c %reldir%/cb.def %reldir%/cb.h %reldir%/cb.rpc \
	%reldir%/fs.c %reldir%/fs.def %reldir%/fs.h %reldir%/fs.rpc \
	%reldir%/vol.c %reldir%/vol.def %reldir%/vol.h %reldir%/vol.rpc \
	%reldir%/rmt.c %reldir%/rmt.def %reldir%/rmt.h %reldir%/rmt.rpc
cell_proto_libproto_a_SOURCES += %reldir%/pt.c %reldir%/pt.def %reldir%/pt.h %reldir%/pt.rpc
cell_proto_libproto_a_SOURCES += %reldir%/bos.c %reldir%/bos.def %reldir%/bos.h %reldir%/bos.rpc
cell_proto_libproto_a_SOURCES += %reldir%/vl.c %reldir%/vl.def %reldir%/vl.h %reldir%/vl.rpc
cell_proto_libproto_a_SOURCES += %reldir%/ubik.c %reldir%/ubik.def %reldir%/ubik.h \
	%reldir%/ubik_disk.rpc %reldir%/ubik_vote.rpc
cell_proto_libproto_a_SOURCES += %reldir%/token.c %reldir%/token.h
cell_proto_libproto_a_SOURCES += %reldir%/gk.c %reldir%/gk.def %reldir%/gk.h %reldir%/gk.rpc
