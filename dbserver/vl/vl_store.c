/* SPDX-License-Identifier: BSD-2-Clause
 * Entries as rows.  Always true: each id of an entry is a row of vl_id, so an id belongs to one entry and
 * one type; an entry has 1 to 13 sites, numbered from 0 without gaps. */
#include "dbserver/vl/vl_store.h"

#include "dbserver/vl/vl_sql.h"

static const char *const vl_migrations[] = {
	"CREATE TABLE vl_meta(one INTEGER PRIMARY KEY CHECK(one = 1), max_id INTEGER NOT NULL,"
	"	epoch INTEGER NOT NULL, counter INTEGER NOT NULL) STRICT;"
	"INSERT INTO vl_meta VALUES(1, 536870912, 0, 1);"
	"CREATE TABLE vl_server(slot INTEGER PRIMARY KEY CHECK(slot BETWEEN 1 AND 254),"
	"	uuid BLOB UNIQUE, uniq INTEGER NOT NULL) STRICT;"
	"CREATE TABLE vl_addr(slot INTEGER NOT NULL REFERENCES vl_server, i INTEGER NOT NULL,"
	"	ip INTEGER NOT NULL UNIQUE, PRIMARY KEY(slot, i)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE vl_entry(n INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
	"	rw INTEGER NOT NULL, ro INTEGER NOT NULL, bk INTEGER NOT NULL, clone INTEGER NOT NULL,"
	"	flags INTEGER NOT NULL, lock_time INTEGER NOT NULL) STRICT;"
	"CREATE TABLE vl_id(id INTEGER PRIMARY KEY, n INTEGER NOT NULL REFERENCES vl_entry,"
	"	type INTEGER NOT NULL) STRICT;"
	"CREATE INDEX vl_id_n ON vl_id(n);"
	"CREATE TABLE vl_site(n INTEGER NOT NULL REFERENCES vl_entry, i INTEGER NOT NULL,"
	"	slot INTEGER NOT NULL REFERENCES vl_server, part INTEGER NOT NULL,"
	"	flags INTEGER NOT NULL, PRIMARY KEY(n, i)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX vl_site_slot ON vl_site(slot)",
};

#define ROW_COLUMNS "e.n, e.name, e.rw, e.ro, e.bk, e.clone, e.flags, e.lock_time"
static const char *const vl_sql[VS_COUNT] = {
	[VS_META] = "SELECT max_id, epoch, counter FROM vl_meta",
	[VS_META_VERSION] = "UPDATE vl_meta SET epoch = ?1, counter = ?2",
	[VS_META_MAX] = "UPDATE vl_meta SET max_id = ?1",
	[VS_ROW_BY_N] = "SELECT " ROW_COLUMNS " FROM vl_entry e WHERE n = ?1",
	[VS_ROW_BY_NAME] = "SELECT " ROW_COLUMNS " FROM vl_entry e WHERE name = ?1",
	[VS_ROW_BY_ID] = "SELECT " ROW_COLUMNS " FROM vl_id i CROSS JOIN vl_entry e ON e.n = i.n "
			 "WHERE i.id = ?1 AND (?2 < 0 OR i.type = ?2)",
	[VS_ROW_NEXT] = "SELECT " ROW_COLUMNS " FROM vl_entry e WHERE n > ?1 ORDER BY n LIMIT 1",
	[VS_ROW_LAST] = "SELECT max(n) FROM vl_entry",
	[VS_ROW_COUNT] = "SELECT type, count(*) FROM vl_id GROUP BY type",
	[VS_SITES] = "SELECT s.slot, s.part, s.flags, a.ip, v.uuid, v.uniq FROM vl_site s "
		     "CROSS JOIN vl_server v ON v.slot = s.slot "
		     "LEFT JOIN vl_addr a ON a.slot = s.slot AND a.i = 0 WHERE s.n = ?1 ORDER BY s.i",
	[VS_ROW_INSERT] = "INSERT INTO vl_entry(name, rw, ro, bk, clone, flags, lock_time) "
			  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[VS_ROW_UPDATE] = "UPDATE vl_entry SET name = ?1, rw = ?2, ro = ?3, bk = ?4, clone = ?5, "
			  "flags = ?6, lock_time = ?7 WHERE n = ?8",
	[VS_ROW_DELETE] = "DELETE FROM vl_entry WHERE n = ?1",
	[VS_IDS_DELETE] = "DELETE FROM vl_id WHERE n = ?1",
	[VS_ID_INSERT] = "INSERT INTO vl_id(id, n, type) VALUES(?1, ?2, ?3)",
	[VS_SITES_DELETE] = "DELETE FROM vl_site WHERE n = ?1",
	[VS_SITE_INSERT] = "INSERT INTO vl_site(n, i, slot, part, flags) VALUES(?1, ?2, ?3, ?4, ?5)",
	[VS_ID_OWNER] = "SELECT n FROM vl_id WHERE id = ?1",
	[VS_NAME_OWNER] = "SELECT n FROM vl_entry WHERE name = ?1",
	[VS_ID_LAST] = "SELECT max(id) FROM vl_id WHERE id >= ?1 AND id < ?2",
	[VS_SERVER_BY_SLOT] = "SELECT slot, uuid, uniq FROM vl_server WHERE slot = ?1",
	[VS_SERVER_BY_IP] = "SELECT v.slot, v.uuid, v.uniq FROM vl_addr a CROSS JOIN vl_server v "
			    "ON v.slot = a.slot WHERE a.ip = ?1",
	[VS_SERVER_BY_UUID] = "SELECT slot, uuid, uniq FROM vl_server WHERE uuid = ?1",
	[VS_SERVER_ADDRS] = "SELECT ip FROM vl_addr WHERE slot = ?1 ORDER BY i",
	[VS_SERVER_SLOTS] = "SELECT slot FROM vl_server ORDER BY slot",
	[VS_SERVER_INSERT] = "INSERT INTO vl_server(slot, uuid, uniq) VALUES(?1, ?2, ?3)",
	[VS_SERVER_UPDATE] = "UPDATE vl_server SET uuid = ?2, uniq = ?3 WHERE slot = ?1",
	[VS_SERVER_DELETE] = "DELETE FROM vl_server WHERE slot = ?1",
	[VS_ADDRS_DELETE] = "DELETE FROM vl_addr WHERE slot = ?1",
	[VS_ADDR_INSERT] = "INSERT INTO vl_addr(slot, i, ip) VALUES(?1, ?2, ?3)",
	[VS_SERVER_USED] = "SELECT 1 FROM vl_site WHERE slot = ?1 LIMIT 1",
};

static const struct db_schema vl_schema = {
	.name = "vl",
	.migrations = vl_migrations,
	.version = ARRAY_SIZE(vl_migrations),
	.sql = vl_sql,
	.sql_count = VS_COUNT,
};

static afs_err read_version(struct db *db, struct ubik_version *out)
{
	CLEANUP(db_rows) struct db_rows r = db_query(db, VS_META);
	if (!db_next(&r))
		return r.err ? r.err : AFS_ECORRUPT;
	*out = (struct ubik_version){(int32_t)db_int(&r, 1), (int32_t)db_int(&r, 2)};
	return AFS_OK;
}

afs_err vl_open(const struct dbserver_config *config, struct vl **out)
{
	CLEANUP(vl) struct vl *vl = mem_new(struct vl);
	if (!vl)
		return AFS_ENOMEM;
	vl->memo = memo_new(VL_MEMO_BYTES);
	if (!vl->memo)
		return AFS_ENOMEM;
	vl->ports = config->ports;
	vl->started = clk_wall();
	struct ubik_version version = {};
	ubik_site_init(&vl->ubik, &vl->ports, config->ip, vl->started, version);

	struct db_options opt = {.create = true, .sync = config->sync};
	TRY(db_open(config->path, &vl_schema, &opt, &vl->w));
	TRY(read_version(vl->w, &version));
	ubik_site_committed(&vl->ubik, version);
	opt.create = false;
	TRY(db_open(config->path, &vl_schema, &opt, &vl->r));
	*out = TAKE(vl);
	return AFS_OK;
}

void vl_close(struct vl *vl)
{
	if (!vl)
		return;
	db_close(vl->r);
	db_close(vl->w);
	ubik_site_fini(&vl->ubik);
	memo_free(vl->memo);
	mem_free(vl);
}

/* --- transactions --------------------------------------------------------------------------- */

afs_err vl_write_begin(struct vl *vl, struct vl_write *w)
{
	ubik_writer_enter();
	afs_err err = db_begin(vl->w, &w->tx);
	if (err) {
		ubik_writer_leave();
		return err;
	}
	w->vl = vl;
	w->db = vl->w;
	ubik_site_writing(&vl->ubik, true);
	return AFS_OK;
}

afs_err vl_write_commit(struct vl_write *w)
{
	struct ubik_version next = ubik_site_next(&w->vl->ubik);
	TRY(db_run(w->db, VS_META_VERSION, DB_INT(next.epoch), DB_INT(next.counter)));
	TRY(db_commit(&w->tx));
	memo_forget(w->vl->memo);
	ubik_site_committed(&w->vl->ubik, next);
	return AFS_OK;
}

void vl_write_end(struct vl_write *w)
{
	if (!w->db)
		return;
	db_rollback(&w->tx);
	ubik_site_writing(&w->vl->ubik, false);
	ubik_writer_leave();
	w->db = NULL;
}

afs_err vl_read_begin(struct vl *vl, struct vl_read *r)
{
	db_lock(vl->r);
	r->since = memo_since(vl->memo);
	afs_err err = db_begin_read(vl->r, &r->tx);
	if (err) {
		db_unlock(vl->r);
		return err;
	}
	r->db = vl->r;
	return AFS_OK;
}

void vl_read_end(struct vl_read *r)
{
	if (!r->db)
		return;
	db_rollback(&r->tx);
	db_unlock(r->db);
	r->db = NULL;
}

/* --- reading -------------------------------------------------------------------------------- */

static afs_err read_sites(struct db *db, struct vl_row *row)
{
	CLEANUP(db_rows) struct db_rows r = db_query(db, VS_SITES, DB_INT(row->n));
	row->sites = 0;
	while (db_next(&r)) {
		if (row->sites == VL_SITES_MAX)
			return AFS_ECORRUPT;
		struct vl_site *s = &row->site[row->sites++];
		*s = (struct vl_site){.slot = (uint8_t)db_int(&r, 0),
			.partition = (uint8_t)db_int(&r, 1),
			.flags = (uint8_t)db_int(&r, 2),
			.ip = (uint32_t)db_int(&r, 3),
			.uniq = (int32_t)db_int(&r, 5)};
		size_t n;
		const void *uuid = db_blob(&r, 4, &n);
		s->registered = n == sizeof(s->uuid);
		if (s->registered)
			memcpy(s->uuid, uuid, n);
	}
	return r.err;
}

/* Takes the rows, whatever happens. */
static afs_err read_row(struct db *db, struct db_rows rows, struct vl_row *out)
{
	CLEANUP(db_rows) struct db_rows r = rows;
	if (!db_next(&r))
		return r.err ? r.err : AFS_ENOENT;
	*out = (struct vl_row){.n = db_int(&r, 0),
		.id = {(uint32_t)db_int(&r, 2), (uint32_t)db_int(&r, 3), (uint32_t)db_int(&r, 4)},
		.clone = (uint32_t)db_int(&r, 5),
		.flags = (int32_t)db_int(&r, 6),
		.lock_time = db_int(&r, 7)};
	size_t len;
	const char *name = db_text(&r, 1, &len);
	if (r.err)
		return r.err;
	if (len > VL_NAME_MAX)
		return AFS_ECORRUPT;
	memcpy(out->name, name, len);
	return read_sites(db, out);
}

afs_err vl_row_by_number(struct db *db, int64_t n, struct vl_row *out)
{
	return read_row(db, db_query(db, VS_ROW_BY_N, DB_INT(n)), out);
}

afs_err vl_row_by_id(struct db *db, uint32_t id, int32_t voltype, struct vl_row *out)
{
	return read_row(db, db_query(db, VS_ROW_BY_ID, DB_INT(id), DB_INT(voltype)), out);
}

afs_err vl_row_by_name(struct db *db, const char *name, size_t len, struct vl_row *out)
{
	return read_row(db, db_query(db, VS_ROW_BY_NAME, DB_TEXT_N(name, len)), out);
}

afs_err vl_row_next(struct db *db, int64_t after, struct vl_row *out)
{
	return read_row(db, db_query(db, VS_ROW_NEXT, DB_INT(after)), out);
}

afs_err vl_row_last(struct db *db, int64_t *n)
{
	*n = 0;
	afs_err err = db_get_int(db, VS_ROW_LAST, n);
	return err == AFS_ENOENT ? AFS_OK : err;
}

afs_err vl_row_count(struct db *db, uint32_t by_type[3])
{
	memset(by_type, 0, 3 * sizeof(by_type[0]));
	CLEANUP(db_rows) struct db_rows r = db_query(db, VS_ROW_COUNT);
	while (db_next(&r)) {
		int64_t type = db_int(&r, 0);
		if (type >= 0 && type < 3)
			by_type[type] = (uint32_t)db_int(&r, 1);
	}
	return r.err;
}

/* --- writing -------------------------------------------------------------------------------- */

/* Is what `statement` finds under `key` free, or row n's own? */
static afs_err check_owner(
	struct db *db, enum vl_sql statement, struct db_value key, int64_t n, afs_err taken)
{
	int64_t owner;
	const struct db_value v[] = {DB_NULL, key};
	afs_err err = db_get_int_values(db, statement, &owner, v, 1);
	if (err == AFS_ENOENT)
		return AFS_OK;
	if (err)
		return err;
	return n && owner == n ? AFS_OK : taken;
}

afs_err vl_row_save(struct vl_write *w, const struct vl_row *row)
{
	struct db *db = w->db;
	int64_t n = row->n;
	/* ids first: what stock finds first (vldb.md §4.1) */
	for (int t = 0; t < 3; t++) {
		if (!row->id[t])
			continue;
		for (int u = 0; u < t; u++)
			if (row->id[u] == row->id[t])
				return AFS_EIDEXIST;
		TRY(check_owner(db, VS_ID_OWNER, DB_INT(row->id[t]), n, AFS_EIDEXIST));
	}
	TRY(check_owner(db, VS_NAME_OWNER, DB_TEXT(row->name), n, AFS_ENAMEEXIST));

	if (n) {
		TRY(db_run(db, VS_IDS_DELETE, DB_INT(n)));
		TRY(db_run(db, VS_SITES_DELETE, DB_INT(n)));
		TRY(db_run(db, VS_ROW_UPDATE, DB_TEXT(row->name), DB_INT(row->id[0]),
			DB_INT(row->id[1]), DB_INT(row->id[2]), DB_INT(row->clone),
			DB_INT(row->flags), DB_INT(row->lock_time), DB_INT(n)));
	} else {
		TRY(db_run(db, VS_ROW_INSERT, DB_TEXT(row->name), DB_INT(row->id[0]),
			DB_INT(row->id[1]), DB_INT(row->id[2]), DB_INT(row->clone),
			DB_INT(row->flags), DB_INT(row->lock_time)));
		n = db_last_rowid(db);
		if (n > INT32_MAX) /* no index of ListEntry is left for it */
			return AFS_ETOOMANY;
	}
	for (int t = 0; t < 3; t++)
		if (row->id[t])
			TRY(db_run(db, VS_ID_INSERT, DB_INT(row->id[t]), DB_INT(n), DB_INT(t)));
	for (unsigned i = 0; i < row->sites; i++)
		TRY(db_run(db, VS_SITE_INSERT, DB_INT(n), DB_INT(i), DB_INT(row->site[i].slot),
			DB_INT(row->site[i].partition), DB_INT(row->site[i].flags)));
	return AFS_OK;
}

afs_err vl_row_delete(struct vl_write *w, int64_t n)
{
	TRY(db_run(w->db, VS_IDS_DELETE, DB_INT(n)));
	TRY(db_run(w->db, VS_SITES_DELETE, DB_INT(n)));
	return db_run(w->db, VS_ROW_DELETE, DB_INT(n));
}

afs_err vl_max_get(struct db *db, uint32_t *max)
{
	int64_t v;
	TRY(db_get_int(db, VS_META, &v));
	*max = (uint32_t)v;
	return AFS_OK;
}

afs_err vl_max_set(struct vl_write *w, uint32_t max)
{
	return db_run(w->db, VS_META_MAX, DB_INT(max));
}

afs_err vl_id_last_used(struct db *db, uint32_t from, uint32_t n, uint32_t *id)
{
	int64_t v;
	TRY(db_get_int(db, VS_ID_LAST, &v, DB_INT(from), DB_INT((int64_t)from + n)));
	*id = (uint32_t)v;
	return AFS_OK;
}
