/* SPDX-License-Identifier: BSD-2-Clause
 * On disk, a partition is a directory:
 *
 *   lock                   held (flock) by the process that serves the partition
 *   vol/<id>/              one volume group; <id> in decimal is its read-write volume's, or that of a
 *                          volume that stands alone
 *   vol/<id>.<n>/          a group whose read-write volume is gone or was replaced: clones live in it
 *   vol/<clone> -> <group> a link by which a clone is found without opening its group
 *     meta.db meta.db-wal  this schema
 *     data/<hex>           one extent each: at most 4 MiB of one file; 16 hex digits
 *   tmp/<id>.<kind>        groups being made or on their way out; emptied at attach
 *
 * A volume group is a read-write volume and its clones.  Time in it is counted in epochs: a row of
 * vnodes, dir_pages or file_extents lives in [born, died).  The read-write volume sees what is
 * alive; a clone is a row in `volumes` with an epoch, and sees what was alive in it.  To clone is
 * to add that row and to start the next epoch: O(1).  A change to a row born in the present epoch
 * is made in place; else the old row dies and a new one is born, and so content that a clone can
 * see is never touched:
 *
 *   blobs         bytes of 4 KiB at most: a small file, a symlink's text (named by vnodes.content,
 *                 written in epoch content_born) or a directory page (named by dir_pages.blob).
 *   extents       `len` valid bytes of a file in data/; what the file holds beyond them is
 *                 nothing.  `sums` is a CRC-32C per 64 KiB block of the valid bytes (big-endian
 *                 words), NULL: none kept.  refs: rows of file_extents.
 *   file_extents  the idx-th 4 MiB of a vnode's content; a missing one is a hole.
 *
 * Times are ns since 1970.  used_kib and files in `volumes` are the sums over the living rows. */
#include "fileserver/store/schema.h"

static const char *const migrations[] = {
	"CREATE TABLE grp("
	"  one INTEGER PRIMARY KEY CHECK(one = 1), id INTEGER NOT NULL, epoch INTEGER NOT NULL, clean INTEGER NOT NULL);"
	"CREATE TABLE volumes("
	"  id INTEGER PRIMARY KEY, type INTEGER NOT NULL, name TEXT NOT NULL, epoch INTEGER NOT NULL /* 0: the living */,"
	"  parent INTEGER NOT NULL, clone INTEGER NOT NULL, backup INTEGER NOT NULL, restored_from INTEGER NOT NULL,"
	"  in_service INTEGER NOT NULL, blessed INTEGER NOT NULL, destroy_me INTEGER NOT NULL,"
	"  needs_salvage INTEGER NOT NULL, uniq INTEGER NOT NULL, quota_kib INTEGER NOT NULL,"
	"  min_quota_kib INTEGER NOT NULL, used_kib INTEGER NOT NULL, files INTEGER NOT NULL, owner INTEGER NOT NULL,"
	"  account INTEGER NOT NULL, creation INTEGER NOT NULL, access INTEGER NOT NULL, updated INTEGER NOT NULL,"
	"  expiration INTEGER NOT NULL, backup_date INTEGER NOT NULL, copy INTEGER NOT NULL,"
	"  update_counter INTEGER NOT NULL, day_use INTEGER NOT NULL, day_use_date INTEGER NOT NULL,"
	"  week_use BLOB NOT NULL /* 7 big-endian words */, offline_message TEXT NOT NULL);"
	"CREATE TABLE vnodes("
	"  key INTEGER PRIMARY KEY /* vnode << 31 | born */, died INTEGER NOT NULL, uniq INTEGER NOT NULL,"
	"  type INTEGER NOT NULL, mode INTEGER NOT NULL, owner INTEGER NOT NULL, grp INTEGER NOT NULL,"
	"  author INTEGER NOT NULL, links INTEGER NOT NULL, length INTEGER NOT NULL, dv INTEGER NOT NULL,"
	"  client_mtime INTEGER NOT NULL, server_mtime INTEGER NOT NULL, parent INTEGER NOT NULL,"
	"  parent_uniq INTEGER NOT NULL, kind INTEGER NOT NULL /* enum vs_kind */, content INTEGER NOT NULL,"
	"  content_born INTEGER NOT NULL, acl BLOB /* as in dumps, the used part */);"
	"CREATE TABLE blobs(id INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE dir_pages("
	"  vnode INTEGER NOT NULL, page INTEGER NOT NULL, born INTEGER NOT NULL, died INTEGER NOT NULL,"
	"  blob INTEGER NOT NULL, PRIMARY KEY(vnode, page, born)) WITHOUT ROWID;"
	"CREATE TABLE file_extents("
	"  vnode INTEGER NOT NULL, idx INTEGER NOT NULL, born INTEGER NOT NULL, died INTEGER NOT NULL,"
	"  extent INTEGER NOT NULL, PRIMARY KEY(vnode, idx, born)) WITHOUT ROWID;"
	"CREATE TABLE extents(id INTEGER PRIMARY KEY, refs INTEGER NOT NULL, len INTEGER NOT NULL, sums BLOB);",
};

#define ALIVE "2147483647"
#define VNODE_COLS                                                                                                     \
	"key, uniq, type, mode, owner, grp, author, links, length, dv, client_mtime, server_mtime, parent, "            \
	"parent_uniq, kind, content, content_born, acl"

#define VOLUME_COLS                                                                                                    \
	"id, type, name, parent, clone, backup, restored_from, in_service, blessed, destroy_me, needs_salvage, uniq, "  \
	"quota_kib, min_quota_kib, used_kib, files, owner, account, creation, access, updated, expiration, "            \
	"backup_date, copy, update_counter, day_use, day_use_date, week_use, offline_message"
#define BORN "(key & 2147483647)"

static const char *const sql[Q_COUNT] = {
	[Q_GROUP_GET] = "SELECT id, epoch, clean FROM grp",
	[Q_GROUP_SET] = "INSERT INTO grp VALUES(1, ?1, ?2, ?3) ON CONFLICT(one) DO UPDATE SET clean = excluded.clean",
	[Q_GROUP_EPOCH] = "UPDATE grp SET epoch = ?1",
	[Q_VOLUME_GET] = "SELECT " VOLUME_COLS ", epoch FROM volumes WHERE epoch = 0",
	[Q_CLONE_GET] = "SELECT " VOLUME_COLS ", epoch FROM volumes WHERE id = ?1 AND epoch > 0",
	[Q_CLONE_ALL] = "SELECT id, epoch FROM volumes WHERE epoch > 0 ORDER BY epoch",
	[Q_VOLUME_DEL] = "DELETE FROM volumes WHERE id = ?1",
	[Q_LIVING_DEL] = "DELETE FROM volumes WHERE epoch = 0",
	[Q_VOLUME_PUT] = "INSERT OR REPLACE INTO volumes(" VOLUME_COLS ", epoch) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
			 "?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, "
			 "?30)",
	[Q_VOLUME_COUNT] = "UPDATE volumes SET uniq = ?2, used_kib = ?3, files = ?4, updated = ?5, update_counter = ?6, "
			   "owner = ?7 WHERE id = ?1",
	/* what an epoch sees of a vnode is the last row born in it or before, unless that had died */
	[Q_VNODE_GET] = "SELECT " VNODE_COLS " FROM vnodes WHERE key >= ?1 << 31 AND key <= (?1 << 31 | ?2) AND died > ?2 "
			"ORDER BY key DESC LIMIT 1",
	[Q_VNODE_ADD] = "INSERT INTO vnodes(" VNODE_COLS ", died) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
			"?13, ?14, ?15, ?16, ?17, ?18, " ALIVE ")",
	[Q_VNODE_SET] = "UPDATE vnodes SET mode = ?2, owner = ?3, grp = ?4, author = ?5, links = ?6, length = ?7, dv = ?8, "
			"client_mtime = ?9, server_mtime = ?10, parent = ?11, parent_uniq = ?12, kind = ?13, content = ?14, "
			"content_born = ?15, acl = ?16 WHERE key = ?1",
	[Q_VNODE_END] = "UPDATE vnodes SET died = ?2 WHERE key = ?1",
	[Q_VNODE_DEL] = "DELETE FROM vnodes WHERE key = ?1",
	[Q_VNODE_NEXT] = "SELECT " VNODE_COLS " FROM vnodes WHERE key >= (?1 + 1) << 31 AND (key >> 31 & 1) = ?2 "
			 "AND " BORN " <= ?3 AND died > ?3 ORDER BY key LIMIT 1",
	[Q_VNODE_RANGE] = "SELECT key >> 31 FROM vnodes WHERE key >= ?1 << 31 AND key < ?2 << 31 AND died = " ALIVE,
	[Q_VNODE_ALL] = "SELECT " VNODE_COLS " FROM vnodes WHERE " BORN " <= ?1 AND died > ?1 ORDER BY key",
	[Q_VNODE_SOME] = "SELECT key, died, kind, content FROM vnodes WHERE key > ?1 ORDER BY key LIMIT ?2",
	[Q_VNODE_NAMES_BLOB] = "SELECT count(*) FROM vnodes WHERE key >= ?1 << 31 AND key < (?1 + 1) << 31 AND kind = 1 "
			       "AND content = ?2",
	[Q_VNODE_BLOBS] = "SELECT content FROM vnodes WHERE kind = 1 UNION SELECT blob FROM dir_pages ORDER BY 1",
	[Q_VNODE_FIX] = "UPDATE vnodes SET links = ?2, parent = ?3, parent_uniq = ?4 WHERE key = ?1",
	[Q_ROOT_OWNER] = "SELECT owner FROM vnodes WHERE key >= 1 << 31 AND key < 2 << 31 AND died = " ALIVE,
	[Q_BLOB_GET] = "SELECT data FROM blobs WHERE id = ?1",
	[Q_BLOB_ADD] = "INSERT INTO blobs(data) VALUES(?1)",
	[Q_BLOB_SET] = "UPDATE blobs SET data = ?2 WHERE id = ?1",
	[Q_BLOB_DEL] = "DELETE FROM blobs WHERE id = ?1",
	[Q_BLOB_ALL] = "SELECT id, length(data) FROM blobs ORDER BY id",
	[Q_PAGE_GET] = "SELECT p.page, p.blob, p.born, b.data FROM dir_pages p LEFT JOIN blobs b ON b.id = p.blob "
		       "WHERE p.vnode = ?1 AND p.born <= ?2 AND p.died > ?2 ORDER BY p.page",
	[Q_PAGE_ADD] = "INSERT INTO dir_pages(vnode, page, born, died, blob) VALUES(?1, ?2, ?3, " ALIVE ", ?4)",
	[Q_PAGE_END] = "UPDATE dir_pages SET died = ?4 WHERE vnode = ?1 AND page = ?2 AND born = ?3",
	[Q_PAGE_DEL] = "DELETE FROM dir_pages WHERE vnode = ?1 AND page = ?2 AND born = ?3",
	[Q_PAGE_ALL] = "SELECT DISTINCT vnode FROM dir_pages WHERE born <= ?1 AND died > ?1",
	[Q_PAGE_BLOBS_DEL] = "DELETE FROM blobs WHERE id IN (SELECT blob FROM dir_pages WHERE vnode = ?1)",
	[Q_PAGES_DEL] = "DELETE FROM dir_pages WHERE vnode = ?1",
	[Q_PAGE_SOME] = "SELECT vnode, page, born, died, blob FROM dir_pages WHERE (vnode, page, born) > (?1, ?2, ?3) "
			"ORDER BY vnode, page, born LIMIT ?4",
	[Q_MAP_SOME] = "SELECT vnode, idx, born, died, extent FROM file_extents WHERE (vnode, idx, born) > (?1, ?2, ?3) "
		       "ORDER BY vnode, idx, born LIMIT ?4",
	[Q_MAP_GET] = "SELECT f.extent, f.born, e.len, e.refs, e.sums FROM file_extents f JOIN extents e ON e.id = f.extent "
		      "WHERE f.vnode = ?1 AND f.idx = ?2 AND f.born <= ?3 AND f.died > ?3",
	[Q_MAP_ADD] = "INSERT INTO file_extents(vnode, idx, born, died, extent) VALUES(?1, ?2, ?3, " ALIVE ", ?4)",
	[Q_MAP_END] = "UPDATE file_extents SET died = ?4 WHERE vnode = ?1 AND idx = ?2 AND born = ?3",
	[Q_MAP_DEL] = "DELETE FROM file_extents WHERE vnode = ?1 AND idx = ?2 AND born = ?3",
	[Q_MAP_FROM] = "SELECT idx, born, extent FROM file_extents WHERE vnode = ?1 AND idx >= ?2 AND died = " ALIVE
		       " ORDER BY idx LIMIT ?3",
	[Q_MAP_NEXT] = "SELECT min(idx) FROM file_extents WHERE vnode = ?1 AND idx >= ?2 AND born <= ?3 AND "
		       "died > ?3",
	[Q_MAP_ALL] = "SELECT vnode, idx, born, died, extent FROM file_extents ORDER BY extent",
	[Q_EXTENT_ADD] = "INSERT INTO extents(id, refs, len, sums) VALUES(?1, 1, ?2, ?3)",
	[Q_EXTENT_SET] = "UPDATE extents SET len = ?2, sums = ?3 WHERE id = ?1",
	[Q_EXTENT_UNREF] = "UPDATE extents SET refs = refs - 1 WHERE id = ?1 AND refs > 1",
	[Q_EXTENT_DEL] = "DELETE FROM extents WHERE id = ?1",
	[Q_EXTENT_GET] = "SELECT refs, len, sums FROM extents WHERE id = ?1",
	[Q_EXTENT_ALL] = "SELECT id, refs, len, sums FROM extents ORDER BY id",
	[Q_EXTENT_MAX] = "SELECT coalesce(max(id), 0) FROM extents",
};

const struct db_schema vs_schema = {
	.name = "volume",
	.migrations = migrations,
	.version = sizeof(migrations) / sizeof(migrations[0]),
	.sql = sql,
	.sql_count = Q_COUNT,
};
