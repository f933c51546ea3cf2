/* SPDX-License-Identifier: BSD-2-Clause
 * A volume's header: its row, and the fields the volume server changes. */
#include "fileserver/store/internal.h"

#include "cell/base/log.h"

#include <string.h>

static void pack_week(const uint32_t week[7], uint8_t out[28])
{
	for (int i = 0; i < 7; i++)
		for (int b = 0; b < 4; b++)
			out[4 * i + b] = (uint8_t)(week[i] >> (24 - 8 * b));
}

static void unpack_week(const uint8_t *in, size_t n, uint32_t week[7])
{
	for (size_t i = 0; i < 7; i++)
		for (size_t b = 0; b < 4; b++)
			week[i] = week[i] << 8 | (4 * i + b < n ? in[4 * i + b] : 0);
}

afs_err vs_header_write(struct db *db, const struct vs_header *h, int64_t epoch)
{
	uint8_t week[28];
	pack_week(h->week_use, week);
	return vs_err_of_db(db_run(db, Q_VOLUME_PUT, DB_INT(h->id), DB_INT(h->type),
		DB_TEXT(h->name), DB_INT(h->parent), DB_INT(h->clone), DB_INT(h->backup),
		DB_INT(h->restored_from), DB_INT(h->in_service), DB_INT(h->blessed),
		DB_INT(h->destroy_me), DB_INT(h->needs_salvage), DB_INT(h->unique),
		DB_INT(h->quota_kib), DB_INT(h->min_quota_kib), DB_INT(h->used_kib),
		DB_INT(h->files), DB_INT(h->owner), DB_INT(h->account), DB_INT(h->creation),
		DB_INT(h->access), DB_INT(h->update), DB_INT(h->expiration), DB_INT(h->backup_date),
		DB_INT(h->copy), DB_INT(h->update_counter), DB_INT(h->day_use),
		DB_INT(h->day_use_date), DB_BLOB(week, sizeof(week)), DB_TEXT(h->offline_message),
		DB_INT(epoch)));
}

static void copy_text(char *out, size_t size, const char *s, size_t n)
{
	n = MIN(n, size - 1);
	memcpy(out, s, n);
	memset(out + n, 0, size - n);
}

static void read_row(struct db_rows *r, struct vs_header *h)
{
	size_t n;
	*h = (struct vs_header){
		.id = (afs_volid)db_int(r, 0),
		.type = (enum afs_voltype)db_int(r, 1),
		.parent = (afs_volid)db_int(r, 3),
		.clone = (afs_volid)db_int(r, 4),
		.backup = (afs_volid)db_int(r, 5),
		.restored_from = (afs_volid)db_int(r, 6),
		.in_service = db_int(r, 7) != 0,
		.blessed = db_int(r, 8) != 0,
		.destroy_me = db_int(r, 9) != 0,
		.needs_salvage = db_int(r, 10) != 0,
		.unique = (uint64_t)db_int(r, 11),
		.quota_kib = (uint64_t)db_int(r, 12),
		.min_quota_kib = (uint64_t)db_int(r, 13),
		.used_kib = (uint64_t)db_int(r, 14),
		.files = (uint64_t)db_int(r, 15),
		.owner = (int32_t)db_int(r, 16),
		.account = (uint32_t)db_int(r, 17),
		.creation = db_int(r, 18),
		.access = db_int(r, 19),
		.update = db_int(r, 20),
		.expiration = db_int(r, 21),
		.backup_date = db_int(r, 22),
		.copy = db_int(r, 23),
		.update_counter = (uint32_t)db_int(r, 24),
		.day_use = (uint32_t)db_int(r, 25),
		.day_use_date = db_int(r, 26),
	};
	const char *s = db_text(r, 2, &n);
	copy_text(h->name, sizeof(h->name), s, n);
	const void *week = db_blob(r, 27, &n);
	unpack_week(week, n, h->week_use);
	s = db_text(r, 28, &n);
	copy_text(h->offline_message, sizeof(h->offline_message), s, n);
}

afs_err vs_epoch_read(struct db *db, int64_t *epoch, bool *clean)
{
	CLEANUP(db_rows) struct db_rows g = db_query(db, Q_GROUP_GET);
	if (!db_next(&g))
		return g.err ? vs_err_of_db(g.err) : AFS_ECORRUPT;
	*epoch = db_int(&g, 1);
	*clean = db_int(&g, 2) != 0;
	return *epoch < 1 || *epoch >= VS_ALIVE ? AFS_ECORRUPT : AFS_OK;
}

afs_err vs_header_read(struct db *db, struct vs_header *h, int64_t *epoch, bool *clean)
{
	TRY(vs_epoch_read(db, epoch, clean));
	CLEANUP(db_rows) struct db_rows r = db_query(db, Q_VOLUME_GET);
	if (!db_next(&r))
		return r.err ? vs_err_of_db(r.err) : AFS_ECORRUPT;
	read_row(&r, h);
	if (h->type > AFS_VOL_BK)
		return AFS_ECORRUPT;
	return r.err;
}

afs_err vs_header_read_clone(struct db *db, afs_volid id, struct vs_header *h, int64_t *epoch)
{
	CLEANUP(db_rows) struct db_rows r = db_query(db, Q_CLONE_GET, DB_INT(id));
	if (!db_next(&r))
		return r.err ? vs_err_of_db(r.err) : AFS_ENOVOL;
	read_row(&r, h);
	*epoch = db_int(&r, 29);
	return h->type > AFS_VOL_BK || *epoch < 1 || *epoch >= VS_ALIVE ? AFS_ECORRUPT : AFS_OK;
}

#define TAKE_FIELD(bit, field)                                                                     \
	if (mask & (bit))                                                                          \
	to->field = from->field

void vs_header_apply(struct vs_header *to, const struct vs_header *from, uint32_t mask)
{
	if (mask & VS_H_NAME)
		copy_text(to->name, sizeof(to->name), from->name,
			strnlen(from->name, sizeof(from->name)));
	if (mask & VS_H_OFFLINE_MESSAGE)
		copy_text(to->offline_message, sizeof(to->offline_message), from->offline_message,
			strnlen(from->offline_message, sizeof(from->offline_message)));
	TAKE_FIELD(VS_H_TYPE, type);
	TAKE_FIELD(VS_H_PARENT, parent);
	TAKE_FIELD(VS_H_CLONE, clone);
	TAKE_FIELD(VS_H_BACKUP, backup);
	TAKE_FIELD(VS_H_RESTORED_FROM, restored_from);
	TAKE_FIELD(VS_H_IN_SERVICE, in_service);
	TAKE_FIELD(VS_H_BLESSED, blessed);
	TAKE_FIELD(VS_H_DESTROY_ME, destroy_me);
	TAKE_FIELD(VS_H_NEEDS_SALVAGE, needs_salvage);
	TAKE_FIELD(VS_H_QUOTA, quota_kib);
	TAKE_FIELD(VS_H_MIN_QUOTA, min_quota_kib);
	TAKE_FIELD(VS_H_ACCOUNT, account);
	TAKE_FIELD(VS_H_CREATION, creation);
	TAKE_FIELD(VS_H_ACCESS, access);
	TAKE_FIELD(VS_H_UPDATE, update);
	TAKE_FIELD(VS_H_EXPIRATION, expiration);
	TAKE_FIELD(VS_H_BACKUP_DATE, backup_date);
	TAKE_FIELD(VS_H_COPY, copy);
	TAKE_FIELD(VS_H_UPDATE_COUNTER, update_counter);
	if (mask & VS_H_DAY_USE) {
		to->day_use = from->day_use;
		to->day_use_date = from->day_use_date;
	}
	if (mask & VS_H_WEEK_USE)
		memcpy(to->week_use, from->week_use, sizeof(to->week_use));
	if (mask & VS_H_UNIQUE)
		to->unique = MAX(to->unique, from->unique);
}

afs_err vs_volume_header(struct vs_volume *v, struct vs_header *out)
{
	TRY(vs_volume_lock(v, false));
	*out = v->h;
	vs_volume_unlock(v);
	return AFS_OK;
}

static afs_err set_header_locked(
	struct vs_volume *v, const struct vs_header *h, uint32_t mask, uint64_t *seq)
{
	struct vs_header want = v->h;
	vs_header_apply(&want, h, mask);
	if (want.name[0] == '\0')
		return AFS_EBADNAME;
	if (want.type > AFS_VOL_BK)
		return AFS_EINVAL;
	CLEANUP(db_tx) struct db_tx tx = {0};
	TRY(vs_err_of_db(db_begin(v->db, &tx)));
	TRY(vs_header_write(v->db, &want, vs_row_epoch(v)));
	TRY(vs_err_of_db(db_commit(&tx)));
	*seq = vs_volume_committed_locked(v);
	v->h = want;
	v->use_unsaved = 0;
	return AFS_OK;
}

afs_err vs_volume_set_header(struct vs_volume *v, const struct vs_header *h, uint32_t mask)
{
	uint64_t seq = 0;
	TRY(vs_volume_lock(v, false));
	afs_err err = set_header_locked(v, h, mask, &seq);
	vs_volume_unlock(v);
	return err ? err : vs_volume_settle(v, seq);
}

/* Day use of earlier days moves into the week, one place per day passed. */
static void roll_days(struct vs_header *h, wall_ns now)
{
	const wall_ns day = SEC(86400);
	int64_t passed = now / day - h->day_use_date / day;
	if (passed <= 0)
		return;
	for (int64_t i = 0; i < MIN(passed, 7); i++) {
		memmove(h->week_use + 1, h->week_use, 6 * sizeof(h->week_use[0]));
		h->week_use[0] = i == 0 ? h->day_use : 0;
	}
	h->day_use = 0;
	h->day_use_date = now / day * day;
}

void vs_volume_use_locked(struct vs_volume *v, wall_ns now)
{
	roll_days(&v->h, now);
	v->h.day_use++;
	v->h.access = now;
	v->use_unsaved++;
}

void vs_volume_count_use(struct vs_volume *v, wall_ns now) NO_TSA
{
	struct vs_volume *base = vs_base_lock(v);
	vs_volume_use_locked(v, now);
	mtx_unlock(&base->lock);
}
