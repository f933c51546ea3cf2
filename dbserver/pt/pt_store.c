/* SPDX-License-Identifier: BSD-2-Clause
 * Rows.  Always true: the graph of groups in groups has no cycle (pt_do_add looks), so that walking
 * upwards ends; ids and names are in one place each. */
#include "dbserver/pt/pt_store.h"

#include "dbserver/pt/pt_sql.h"

#include <assert.h>
#include <stdio.h>

static const char *const pt_migrations[] = {
	"CREATE TABLE pt_meta(one INTEGER PRIMARY KEY CHECK(one = 1), max_user INTEGER NOT NULL,"
	"	min_group INTEGER NOT NULL, epoch INTEGER NOT NULL, counter INTEGER NOT NULL) STRICT;"
	"INSERT INTO pt_meta VALUES(1, 0, -205, 0, 1);"
	"CREATE TABLE pt_entry(n INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE CHECK(id != 0),"
	"	name TEXT NOT NULL UNIQUE, flags INTEGER, owner INTEGER NOT NULL,"
	"	creator INTEGER NOT NULL, ngroups INTEGER NOT NULL, nusers INTEGER NOT NULL,"
	"	cellid INTEGER NOT NULL, created INTEGER NOT NULL, changed INTEGER NOT NULL) STRICT;"
	"CREATE INDEX pt_entry_owner ON pt_entry(owner, id);"
	"CREATE TABLE pt_member(member INTEGER NOT NULL, grp INTEGER NOT NULL,"
	"	PRIMARY KEY(member, grp)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX pt_member_grp ON pt_member(grp, member);"
	"INSERT INTO pt_entry(id, name, owner, creator, ngroups, nusers, cellid, created, changed) "
	"VALUES(-204, 'system:administrators', -204, -204, 0, 0, 0, unixepoch(), unixepoch()),"
	"	(-205, 'system:backup', -204, -204, 0, 0, 0, unixepoch(), unixepoch()),"
	"	(-101, 'system:anyuser', -204, -204, 0, 0, 0, unixepoch(), unixepoch()),"
	"	(-102, 'system:authuser', -204, -204, 0, 0, 0, unixepoch(), unixepoch()),"
	"	(-203, 'system:ptsviewers', -204, -204, 0, 0, 0, unixepoch(), unixepoch()),"
	"	(32766, 'anonymous', -204, -204, 0, 0, 0, unixepoch(), unixepoch())",
};

#define ENTRY_COLUMNS                                                                              \
	"e.n, e.id, e.name, e.flags, e.owner, e.creator, e.ngroups, e.nusers, e.cellid, "          \
	"CASE WHEN e.id < 0 THEN (SELECT count(*) FROM pt_member m WHERE m.grp = e.id) "           \
	"ELSE (SELECT count(*) FROM pt_member m WHERE m.member = e.id) END"
/* UNION visits each group once */
#define ABOVE                                                                                      \
	"WITH RECURSIVE up(id) AS (SELECT grp FROM pt_member WHERE member = ?1 UNION "             \
	"SELECT m.grp FROM up CROSS JOIN pt_member m ON m.member = up.id) "
static const char *const pt_sql[PS_COUNT] = {
	[PS_META] = "SELECT max_user, min_group, epoch, counter FROM pt_meta",
	[PS_META_VERSION] = "UPDATE pt_meta SET epoch = ?1, counter = ?2",
	[PS_META_MAX] = "UPDATE pt_meta SET max_user = ?1, min_group = ?2",
	[PS_BY_ID] = "SELECT " ENTRY_COLUMNS " FROM pt_entry e WHERE e.id = ?1",
	[PS_BY_NAME] = "SELECT " ENTRY_COLUMNS " FROM pt_entry e WHERE e.name = ?1",
	[PS_NEXT] = "SELECT " ENTRY_COLUMNS " FROM pt_entry e WHERE e.n > ?1 ORDER BY e.n LIMIT 1",
	[PS_NUMBER_OF] = "SELECT n FROM pt_entry WHERE id = ?1",
	[PS_TIMES_OF] = "SELECT created, changed FROM pt_entry WHERE id = ?1",
	[PS_ID_OF] = "SELECT id FROM pt_entry WHERE name = ?1",
	[PS_NAME_OF] = "SELECT name FROM pt_entry WHERE id = ?1",
	[PS_INSERT] = "INSERT INTO pt_entry(id, name, flags, owner, creator, ngroups, nusers, cellid, "
		      "created, changed) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)",
	[PS_UPDATE] = "UPDATE pt_entry SET name = ?2, flags = ?3, owner = ?4, ngroups = ?5, "
		      "nusers = ?6, changed = ?7 WHERE id = ?1",
	[PS_QUOTA] = "UPDATE pt_entry SET ngroups = max(0, ngroups + ?2), "
		     "nusers = CASE WHEN ?3 < 0 THEN nusers ELSE ?3 END WHERE id = ?1",
	[PS_DELETE] = "DELETE FROM pt_entry WHERE id = ?1",
	[PS_MEMBER_ADD] = "INSERT INTO pt_member(member, grp) VALUES(?1, ?2)",
	[PS_MEMBER_REMOVE] = "DELETE FROM pt_member WHERE member = ?1 AND grp = ?2",
	[PS_MEMBER_HAS] = "SELECT 1 FROM pt_member WHERE member = ?1 AND grp = ?2",
	[PS_MEMBERS_PURGE] = "DELETE FROM pt_member WHERE member = ?1 OR grp = ?1",
	[PS_GROUPS_OF] = "SELECT grp FROM pt_member WHERE member = ?1 ORDER BY grp",
	[PS_MEMBERS_OF] = "SELECT member FROM pt_member WHERE grp = ?1 ORDER BY member",
	[PS_GROUPS_ABOVE] = ABOVE "SELECT id FROM up ORDER BY id",
	[PS_IS_ABOVE] = ABOVE "SELECT 1 FROM up WHERE id = ?2 LIMIT 1",
	[PS_OWNED] = "SELECT id FROM pt_entry WHERE owner = ?1 AND id > ?2 AND id < 0 "
		     "ORDER BY id LIMIT ?3",
	[PS_RENUMBER] = "UPDATE pt_entry SET id = ?2 WHERE id = ?1",
	[PS_RENUMBER_OWNER] = "UPDATE pt_entry SET owner = ?2 WHERE owner = ?1",
	[PS_RENUMBER_CREATOR] = "UPDATE pt_entry SET creator = ?2 WHERE creator = ?1",
	[PS_RENUMBER_CELL] = "UPDATE pt_entry SET cellid = ?2 WHERE cellid = ?1",
	[PS_RENUMBER_MEMBER] = "UPDATE pt_member SET member = ?2 WHERE member = ?1",
	[PS_RENUMBER_GROUP] = "UPDATE pt_member SET grp = ?2 WHERE grp = ?1",
};

static const struct db_schema pt_schema = {
	.name = "pt",
	.migrations = pt_migrations,
	.version = ARRAY_SIZE(pt_migrations),
	.sql = pt_sql,
	.sql_count = PS_COUNT,
};

static afs_err read_version(struct db *db, struct ubik_version *out)
{
	CLEANUP(db_rows) struct db_rows r = db_query(db, PS_META);
	if (!db_next(&r))
		return r.err ? r.err : AFS_ECORRUPT;
	*out = (struct ubik_version){(int32_t)db_int(&r, 2), (int32_t)db_int(&r, 3)};
	return AFS_OK;
}

afs_err pt_open(const struct dbserver_config *config, struct pt **out)
{
	CLEANUP(pt) struct pt *pt = mem_new(struct pt);
	if (!pt)
		return AFS_ENOMEM;
	pt->memo = memo_new(PT_MEMO_BYTES);
	if (!pt->memo)
		return AFS_ENOMEM;
	pt->ports = config->ports;
	pt->realms = config->realms;
	struct ubik_version version = {};
	ubik_site_init(&pt->ubik, &pt->ports, config->ip, clk_wall(), version);

	struct db_options opt = {.create = true, .sync = config->sync};
	TRY(db_open(config->path, &pt_schema, &opt, &pt->w));
	TRY(read_version(pt->w, &version));
	ubik_site_committed(&pt->ubik, version);
	opt.create = false;
	TRY(db_open(config->path, &pt_schema, &opt, &pt->r));
	*out = TAKE(pt);
	return AFS_OK;
}

void pt_close(struct pt *pt)
{
	if (!pt)
		return;
	db_close(pt->r);
	db_close(pt->w);
	ubik_site_fini(&pt->ubik);
	memo_free(pt->memo);
	mem_free(pt);
}

/* --- transactions --------------------------------------------------------------------------- */

afs_err pt_write_begin(struct pt *pt, struct pt_write *w)
{
	ubik_writer_enter();
	afs_err err = db_begin(pt->w, &w->tx);
	if (err) {
		ubik_writer_leave();
		return err;
	}
	w->pt = pt;
	w->db = pt->w;
	ubik_site_writing(&pt->ubik, true);
	return AFS_OK;
}

afs_err pt_write_commit(struct pt_write *w)
{
	struct ubik_version next = ubik_site_next(&w->pt->ubik);
	TRY(db_run(w->db, PS_META_VERSION, DB_INT(next.epoch), DB_INT(next.counter)));
	TRY(db_commit(&w->tx));
	memo_forget(w->pt->memo);
	ubik_site_committed(&w->pt->ubik, next);
	atomic_fetch_add(&w->pt->generation, 1);
	return AFS_OK;
}

void pt_write_end(struct pt_write *w)
{
	if (!w->db)
		return;
	db_rollback(&w->tx);
	ubik_site_writing(&w->pt->ubik, false);
	ubik_writer_leave();
	w->db = NULL;
}

afs_err pt_read_begin(struct pt *pt, struct pt_read *r)
{
	db_lock(pt->r);
	r->since = memo_since(pt->memo);
	afs_err err = db_begin_read(pt->r, &r->tx);
	if (err) {
		db_unlock(pt->r);
		return err;
	}
	r->db = pt->r;
	return AFS_OK;
}

void pt_read_end(struct pt_read *r)
{
	if (!r->db)
		return;
	db_rollback(&r->tx);
	db_unlock(r->db);
	r->db = NULL;
}

/* --- reading -------------------------------------------------------------------------------- */

static afs_err read_entry(struct db_rows rows, int64_t *n, struct pt_entry *out)
{
	CLEANUP(db_rows) struct db_rows r = rows;
	if (!db_next(&r))
		return r.err ? r.err : AFS_ENOENT;
	int32_t id = (int32_t)db_int(&r, 1);
	*out = (struct pt_entry){.id = id,
		.flags = db_is_null(&r, 3) ? (id < 0 ? PTP_GROUP_DEFAULT : PTP_USER_DEFAULT)
					   : (int32_t)db_int(&r, 3),
		.owner = (int32_t)db_int(&r, 4),
		.creator = (int32_t)db_int(&r, 5),
		.ngroups = (int32_t)db_int(&r, 6),
		.nusers = (int32_t)db_int(&r, 7),
		.cellid = (int32_t)db_int(&r, 8),
		.count = (int32_t)MIN(db_int(&r, 9), INT32_MAX)};
	if (n)
		*n = db_int(&r, 0);
	size_t len;
	const char *name = db_text(&r, 2, &len);
	if (r.err)
		return r.err;
	if (len > PT_NAME_MAX)
		return AFS_ECORRUPT;
	memcpy(out->name, name, len);
	return AFS_OK;
}

afs_err pt_row_by_id(struct db *db, int32_t id, struct pt_entry *out)
{
	return read_entry(db_query(db, PS_BY_ID, DB_INT(id)), NULL, out);
}

afs_err pt_row_by_name(struct db *db, const char *name, size_t len, struct pt_entry *out)
{
	return read_entry(db_query(db, PS_BY_NAME, DB_TEXT_N(name, len)), NULL, out);
}

afs_err pt_row_next(struct db *db, int64_t *n, struct pt_entry *out)
{
	return read_entry(db_query(db, PS_NEXT, DB_INT(*n)), n, out);
}

afs_err pt_row_number_of(struct db *db, int32_t id, int64_t *n)
{
	return db_get_int(db, PS_NUMBER_OF, n, DB_INT(id));
}

afs_err pt_row_times_of(struct db *db, int32_t id, int64_t *created, int64_t *changed)
{
	CLEANUP(db_rows) struct db_rows r = db_query(db, PS_TIMES_OF, DB_INT(id));
	if (!db_next(&r))
		return r.err ? r.err : AFS_ENOENT;
	*created = db_int(&r, 0);
	*changed = db_int(&r, 1);
	return AFS_OK;
}

afs_err pt_row_id_of(struct db *db, const char *name, size_t len, int32_t *id)
{
	int64_t v;
	TRY(db_get_int(db, PS_ID_OF, &v, DB_TEXT_N(name, len)));
	*id = (int32_t)v;
	return AFS_OK;
}

afs_err pt_row_name_of(struct db *db, int32_t id, char out[PT_NAME_MAX + 1])
{
	CLEANUP(db_rows) struct db_rows r = db_query(db, PS_NAME_OF, DB_INT(id));
	if (!db_next(&r))
		return r.err ? r.err : AFS_ENOENT;
	size_t len;
	const char *name = db_text(&r, 0, &len);
	if (r.err)
		return r.err;
	if (len > PT_NAME_MAX)
		return AFS_ECORRUPT;
	memset(out, 0, PT_NAME_MAX + 1);
	memcpy(out, name, len);
	return AFS_OK;
}

afs_err pt_max_get(struct db *db, int32_t *max_user, int32_t *min_group)
{
	CLEANUP(db_rows) struct db_rows r = db_query(db, PS_META);
	if (!db_next(&r))
		return r.err ? r.err : AFS_ECORRUPT;
	*max_user = (int32_t)db_int(&r, 0);
	*min_group = (int32_t)db_int(&r, 1);
	return AFS_OK;
}

/* --- lists ----------------------------------------------------------------------------------- */

afs_err pt_list_add(struct pt_list *l, int32_t id, uint32_t max)
{
	if (l->n == max)
		return AFS_ETOOMANY;
	if (l->n == l->cap) {
		uint32_t cap = l->cap ? l->cap * 2 : 32;
		int32_t *v = mem_resize(l->v, l->cap, cap, sizeof(*v));
		if (!v)
			return AFS_ENOMEM;
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n++] = id;
	return AFS_OK;
}

static int compare_ids(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

void pt_list_sort(struct pt_list *l)
{
	if (!l->n)
		return;
	qsort(l->v, l->n, sizeof(l->v[0]), compare_ids);
	uint32_t kept = 1;
	for (uint32_t i = 1; i < l->n; i++)
		if (l->v[i] != l->v[kept - 1])
			l->v[kept++] = l->v[i];
	l->n = kept;
}

static afs_err gather(struct db_rows rows, uint32_t max, struct pt_list *l)
{
	CLEANUP(db_rows) struct db_rows r = rows;
	while (db_next(&r))
		TRY(pt_list_add(l, (int32_t)db_int(&r, 0), max));
	return r.err;
}

afs_err pt_groups_of(struct db *db, int32_t member, uint32_t max, struct pt_list *l)
{
	return gather(db_query(db, PS_GROUPS_OF, DB_INT(member)), max, l);
}

afs_err pt_members_of(struct db *db, int32_t group, uint32_t max, struct pt_list *l)
{
	return gather(db_query(db, PS_MEMBERS_OF, DB_INT(group)), max, l);
}

afs_err pt_groups_above(struct db *db, int32_t member, uint32_t max, struct pt_list *l)
{
	return gather(db_query(db, PS_GROUPS_ABOVE, DB_INT(member)), max, l);
}

afs_err pt_owned_by(
	struct db *db, int32_t owner, int64_t after, uint32_t max, struct pt_list *l, bool *more)
{
	TRY(gather(db_query(db, PS_OWNED, DB_INT(owner), DB_INT(after), DB_INT((int64_t)max + 1)),
		max + 1, l));
	*more = l->n > max;
	l->n = MIN(l->n, max);
	return AFS_OK;
}

afs_err pt_cps(struct db *db, const struct pt_entry *e, uint32_t max, struct pt_list *l)
{
	TRY(pt_groups_above(db, e->id, max, l));
	TRY(pt_list_add(l, e->id, max));
	TRY(pt_list_add(l, AFS_ANYUSER, max));
	if (e->id != AFS_ANONYMOUS && e->id != AFS_ANYUSER && !pt_name_realm(e->name))
		TRY(pt_list_add(l, AFS_AUTHUSER, max));
	pt_list_sort(l);
	return AFS_OK;
}

/* Users whose name is the address, or its network with zeros behind. */
afs_err pt_host_cps(struct db *db, uint32_t ip, uint32_t max, struct pt_list *l)
{
	for (int zeros = 0; zeros < 4; zeros++) {
		uint32_t net = ip & (UINT32_MAX << 8 * zeros);
		char name[16];
		int len = snprintf(name, sizeof(name), "%u.%u.%u.%u", net >> 24, net >> 16 & 255,
			net >> 8 & 255, net & 255);
		int32_t id;
		if (zeros && net == (ip & (UINT32_MAX << 8 * (zeros - 1))))
			continue; /* the same name again */
		afs_err err = pt_row_id_of(db, name, (size_t)len, &id);
		if (err == AFS_ENOENT || (!err && id < 0))
			continue;
		if (err)
			return err;
		TRY(pt_groups_above(db, id, max, l));
	}
	pt_list_sort(l);
	return AFS_OK;
}

afs_err pt_is_member(struct db *db, int32_t member, int32_t group, bool *yes)
{
	int64_t v;
	afs_err err = db_get_int(db, PS_MEMBER_HAS, &v, DB_INT(member), DB_INT(group));
	if (err == AFS_ENOENT)
		err = db_get_int(db, PS_IS_ABOVE, &v, DB_INT(member), DB_INT(group));
	*yes = !err;
	return err == AFS_ENOENT ? AFS_OK : err;
}

/* --- writing --------------------------------------------------------------------------------- */

static bool leave_is(struct pt_leave leave, int32_t id, unsigned verbs)
{
	return leave.id == id && (1u << leave.verb & verbs);
}
#define VERB(v) (1u << (v))

static struct db_value flags_value(const struct pt_entry *e)
{
	int32_t standard = e->id < 0 ? PTP_GROUP_DEFAULT : PTP_USER_DEFAULT;
	return e->flags == standard ? DB_NULL : DB_INT(e->flags);
}

static struct db_value now_value(void) { return DB_INT(clk_wall() / NS_PER_SEC); }

afs_err pt_row_insert(struct pt_write *w, struct pt_leave leave, const struct pt_entry *e)
{
	assert(leave.verb == (e->id < 0 ? PTV_NEW_GROUP : PTV_NEW_USER) ||
	       (e->id > 0 && leave.verb == PTV_NEW_SELF));
	return db_run(w->db, PS_INSERT, DB_INT(e->id), DB_TEXT(e->name), flags_value(e),
		DB_INT(e->owner), DB_INT(e->creator), DB_INT(e->ngroups), DB_INT(e->nusers),
		DB_INT(e->cellid), now_value());
}

afs_err pt_row_update(struct pt_write *w, struct pt_leave leave, const struct pt_entry *e)
{
	assert(leave_is(leave, e->id, VERB(PTV_CHANGE) | VERB(PTV_PRIVACY) | VERB(PTV_QUOTA)));
	return db_run(w->db, PS_UPDATE, DB_INT(e->id), DB_TEXT(e->name), flags_value(e),
		DB_INT(e->owner), DB_INT(e->ngroups), DB_INT(e->nusers), now_value());
}

afs_err pt_row_quota_add(struct pt_write *w, int32_t id, int32_t d_ngroups, int32_t set_nusers)
{
	return db_run(w->db, PS_QUOTA, DB_INT(id), DB_INT(d_ngroups), DB_INT(set_nusers));
}

afs_err pt_row_delete(struct pt_write *w, struct pt_leave leave, int32_t id)
{
	assert(leave_is(leave, id, VERB(PTV_DELETE)));
	TRY(db_run(w->db, PS_MEMBERS_PURGE, DB_INT(id)));
	TRY(db_run(w->db, PS_DELETE, DB_INT(id)));
	return db_run(w->db, PS_RENUMBER_OWNER, DB_INT(id), DB_INT(0));
}

afs_err pt_row_renumber(struct pt_write *w, struct pt_leave leave, int32_t id, int32_t newid)
{
	assert(leave_is(leave, id, VERB(PTV_RENUMBER)));
	static const enum pt_sql places[] = {PS_RENUMBER, PS_RENUMBER_OWNER, PS_RENUMBER_CREATOR,
		PS_RENUMBER_CELL, PS_RENUMBER_MEMBER, PS_RENUMBER_GROUP};
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		TRY(db_run(w->db, places[i], DB_INT(id), DB_INT(newid)));
	return AFS_OK;
}

afs_err pt_row_member_add(struct pt_write *w, struct pt_leave leave, int32_t member, int32_t group)
{
	/* a foreign user joins its realm's group by being registered */
	assert(leave_is(leave, group, VERB(PTV_ADD)) || leave.verb == PTV_NEW_SELF ||
	       leave.verb == PTV_NEW_USER);
	afs_err err = db_run(w->db, PS_MEMBER_ADD, DB_INT(member), DB_INT(group));
	return err == AFS_EEXIST ? AFS_EIDEXIST : err;
}

afs_err pt_row_member_remove(
	struct pt_write *w, struct pt_leave leave, int32_t member, int32_t group)
{
	assert(leave_is(leave, group, VERB(PTV_REMOVE)));
	TRY(db_run(w->db, PS_MEMBER_REMOVE, DB_INT(member), DB_INT(group)));
	return db_changes(w->db) ? AFS_OK : AFS_ENOENT;
}

afs_err pt_max_set(struct pt_write *w, struct pt_leave leave, int32_t max_user, int32_t min_group)
{
	assert(leave_is(leave, 0, VERB(PTV_MAX)));
	return db_run(w->db, PS_META_MAX, DB_INT(max_user), DB_INT(min_group));
}

afs_err pt_max_follow(struct pt_write *w, int32_t id)
{
	int32_t max_user, min_group;
	TRY(pt_max_get(w->db, &max_user, &min_group));
	if (id > max_user)
		max_user = id;
	else if (id < min_group)
		min_group = id;
	else
		return AFS_OK;
	return db_run(w->db, PS_META_MAX, DB_INT(max_user), DB_INT(min_group));
}
