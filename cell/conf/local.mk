# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += cell/conf/libconf.a
cell_conf_libconf_a_SOURCES = 
