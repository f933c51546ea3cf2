# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/conf/libconf.a
cell_conf_libconf_a_SOURCES = %reldir%/check.c %reldir%/conf.c %reldir%/conf.h %reldir%/sample.c \
	%reldir%/schema.def %reldir%/schema.h %reldir%/value.c %reldir%/yaml.c %reldir%/yaml.h
