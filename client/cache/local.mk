# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += client/cache/libcache.a
client_cache_libcache_a_SOURCES = %reldir%/cache.c %reldir%/cache.h %reldir%/chunks.c %reldir%/content.c \
	%reldir%/log.c %reldir%/inside.h %reldir%/place.c %reldir%/slot.c %reldir%/slot.h
