# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += client/cm/libcm.a
client_cm_libcm_a_SOURCES = 
