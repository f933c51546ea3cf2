/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The statements of a volume group's database; schema.c opens with its layout. */
#pragma once
#include "cell/db/db.h"

#include <stdint.h>

/* Rows live in epochs [born, died); a row that has not died has this. */
#define VS_ALIVE INT64_C(0x7fffffff)
/* vnodes.key: by vnode number, then by epoch. */
#define VS_KEY(vnode, born) ((int64_t)(vnode) << 31 | (born))

enum vs_sql {
	Q_GROUP_GET,
	Q_GROUP_SET,
	Q_GROUP_EPOCH,
	Q_VOLUME_GET,
	Q_VOLUME_PUT,
	Q_VOLUME_COUNT,
	Q_VOLUME_DEL,
	Q_CLONE_GET,
	Q_CLONE_ALL,
	Q_LIVING_DEL,
	Q_VNODE_GET,
	Q_VNODE_ADD,
	Q_VNODE_SET,
	Q_VNODE_END,
	Q_VNODE_DEL,
	Q_VNODE_NEXT,
	Q_VNODE_RANGE,
	Q_VNODE_ALL,
	Q_VNODE_BLOBS,
	Q_VNODE_FIX,
	Q_VNODE_SOME,
	Q_VNODE_NAMES_BLOB,
	Q_ROOT_OWNER,
	Q_BLOB_GET,
	Q_BLOB_ADD,
	Q_BLOB_SET,
	Q_BLOB_DEL,
	Q_BLOB_ALL,
	Q_PAGE_GET,
	Q_PAGE_ADD,
	Q_PAGE_END,
	Q_PAGE_DEL,
	Q_PAGE_ALL,
	Q_PAGE_BLOBS_DEL,
	Q_PAGES_DEL,
	Q_PAGE_SOME,
	Q_MAP_GET,
	Q_MAP_ADD,
	Q_MAP_END,
	Q_MAP_DEL,
	Q_MAP_FROM,
	Q_MAP_NEXT,
	Q_MAP_ALL,
	Q_MAP_SOME,
	Q_EXTENT_ADD,
	Q_EXTENT_SET,
	Q_EXTENT_UNREF,
	Q_EXTENT_DEL,
	Q_EXTENT_GET,
	Q_EXTENT_ALL,
	Q_EXTENT_MAX,
	Q_COUNT
};

extern const struct db_schema vs_schema;
