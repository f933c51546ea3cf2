/* SPDX-License-Identifier: BSD-2-Clause
 * Clones: volumes that show a group as it was in an epoch that has passed.
 *
 * Making one is a row in `volumes` and the next epoch; nothing of the tree is touched.  The link
 * vol/<id> -> <group> is made before the row and removed after it, so that a start finds every clone
 * by its links alone; one whose row is missing was never made, or is gone.
 *
 * When the read-write volume goes, or a restore puts another group in its place, its clones go on in
 * a headless group: the folder gets a name <id>.<n>, one rename, and that name says that what row
 * there is of a read-write volume means nothing.
 *
 * Rows that had died before the first epoch in which somebody looks, and content they alone named, are
 * removed by the keeper, some at a time: vs_reclaim_locked. */
#include "fileserver/store/internal.h"

#include "cell/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool vs_volume_is_clone(struct vs_volume *v) { return v->base != v; }

/* --- links ---------------------------------------------------------------------------- */

static const char *name_of(afs_volid id, char out[16])
{
	snprintf(out, 16, "%u", id);
	return out;
}

/* In one step, instead of one that is there. */
afs_err vs_clone_link(struct vs_partition *p, afs_volid id, const char *folder)
{
	char name[16], aside[48];
	snprintf(aside, sizeof(aside), "%u.%u.link", id, atomic_fetch_add(&p->tmp_serial, 1));
	if (symlinkat(folder, p->tmp_fd, aside) != 0 ||
		renameat(p->tmp_fd, aside, p->vol_fd, name_of(id, name)) != 0)
		return log_error(vs_err_of_errno(errno), "vs.clone.link path=%s/vol/%u errno=%d", p->path, id, errno);
	return p->s->config.durability == VS_POWER && fsync(p->vol_fd) != 0 ? AFS_EIO : AFS_OK;
}

static void unlink_clone(struct vs_partition *p, afs_volid id)
{
	char name[16];
	if (unlinkat(p->vol_fd, name_of(id, name), 0) != 0 && errno != ENOENT)
		log_warn("vs.clone.unlink path=%s/vol/%s errno=%d text=\"removed at the next start\"", p->path, name,
			errno);
}

/* --- objects -------------------------------------------------------------------------- */

static struct vs_volume *clone_new(struct vs_volume *base, afs_volid id)
{
	struct vs_volume *c = vs_volume_alloc(base->part, id);
	if (!c)
		return NULL;
	vs_volume_ref(base);
	c->base = base;
	return c;
}

static void join(struct vs_volume *base, struct vs_volume *c) NO_TSA
{
	mtx_lock(&base->lock);
	list_push_back(&base->clones, &c->clone_link);
	mtx_unlock(&base->lock);
}

afs_err vs_clone_register(struct vs_volume *base, afs_volid id)
{
	struct vs_volume *c = clone_new(base, id);
	if (!c)
		return AFS_ENOMEM;
	join(base, c);
	afs_err err = vs_volume_table_add(c);
	if (err)
		vs_volume_unref(c);
	return err;
}

afs_err vs_clone_view_locked(struct vs_volume *v)
{
	struct vs_volume *base = v->base;
	if (v->making)
		return AFS_ENOVOL;
	v->db = base->db;
	v->data_fd = base->data_fd;
	if (v->loaded && v->serial == base->serial)
		return AFS_OK;
	vs_vnode_forget_all(v);
	v->loaded = false;
	afs_err err = vs_header_read_clone(base->db, v->id, &v->h, &v->epoch);
	if (err == AFS_ENOVOL) { /* the link was made, the row never was, or it went first */
		v->deleted = true;
		unlink_clone(v->part, v->id);
		list_remove(&v->clone_link);
		atomic_store(&v->vanished, true);
	}
	TRY(err);
	v->serial = base->serial;
	v->loaded = true;
	return AFS_OK;
}

void vs_clone_vanish(struct vs_volume *v)
{
	if (atomic_exchange(&v->vanished, false))
		vs_volume_table_remove(v);
}

/* Of an id that is in the table: is there really a volume? */
static bool vanished(struct vs_partition *p, afs_volid id)
{
	struct vs_volume *v = vs_volume_lookup(p, id);
	if (!v)
		return true;
	if (vs_volume_is_clone(v) && vs_volume_lock(v, false) == AFS_OK)
		vs_volume_unlock(v);
	bool gone = atomic_load(&v->vanished);
	vs_clone_vanish(v);
	vs_volume_unref(v);
	return gone;
}

/* --- making and refreshing ------------------------------------------------------------ */

/* What the clone's header has of its source's. */
static struct vs_header header_of(const struct vs_header *src, const struct vs_header *want, wall_ns now)
{
	struct vs_header h = *src;
	h.id = want->id;
	h.type = want->type;
	memcpy(h.name, want->name, sizeof(h.name));
	h.in_service = false;
	h.destroy_me = true;
	h.blessed = true;
	h.creation = h.copy = now;
	if (h.type == AFS_VOL_BK)
		h.backup_date = now;
	h.day_use = 0;
	h.day_use_date = now;
	memset(h.week_use, 0, sizeof(h.week_use));
	return h;
}

/* What the source's header notes of a clone. */
static void note_clone(struct vs_header *src, const struct vs_header *h, wall_ns now)
{
	if (h->type == AFS_VOL_RO)
		src->clone = h->id;
	if (h->type == AFS_VOL_BK) {
		src->backup = h->id;
		src->backup_date = now;
	}
}

/* `h` in the clone's row, the source's header, and the next epoch when the source lives. */
static afs_err name_clone(struct vs_volume *v, const struct vs_header *h, wall_ns now, uint64_t *seq)
{
	struct vs_header src = v->h;
	bool living = v->base == v;
	CLEANUP(db_tx) struct db_tx tx = {0};
	if (living && v->epoch + 1 >= VS_ALIVE)
		return AFS_ERANGE;
	note_clone(&src, h, now);
	TRY(vs_err_of_db(db_begin(v->db, &tx)));
	TRY(vs_header_write(v->db, h, v->epoch));
	TRY(vs_header_write(v->db, &src, vs_row_epoch(v)));
	if (living)
		TRY(vs_err_of_db(db_run(v->db, Q_GROUP_EPOCH, DB_INT(v->epoch + 1))));
	TRY(vs_err_of_db(db_commit(&tx)));
	*seq = vs_volume_committed_locked(v);
	v->h = src;
	v->epoch += living;
	return AFS_OK;
}

static afs_err make_locked(
	struct vs_volume *v, struct vs_volume *c, const struct vs_header *want, wall_ns now, uint64_t *seq)
{
	if (v->base != c->base)
		return AFS_EVBUSY; /* a restore came between */
	const struct vs_header h = header_of(&v->h, want, now);
	TRY(vs_clone_link(v->part, c->id, v->base->folder));
	TRY(name_clone(v, &h, now, seq));
	c->making = false;
	return AFS_OK;
}

static void give_up(struct vs_volume *c) NO_TSA
{
	struct vs_volume *base = vs_base_lock(c);
	unlink_clone(c->part, c->id);
	c->deleted = true;
	list_remove(&c->clone_link);
	mtx_unlock(&base->lock);
	vs_volume_table_remove(c);
	vs_volume_unref(c);
}

afs_err vs_clone_make(struct vs_volume *v, const struct vs_header *want, wall_ns now, struct vs_volume **out)
{
	if (want->name[0] == '\0' || !memchr(want->name, '\0', sizeof(want->name)))
		return AFS_EBADNAME;
	if (want->id == 0 || want->type > AFS_VOL_BK)
		return AFS_EINVAL;
	if (want->type == AFS_VOL_RW)
		return AFS_ENOTSUP; /* a group has one read-write volume */
	TRY(vs_space_check(v->part, 64));
	struct vs_volume *c = clone_new(v->base, want->id);
	if (!c)
		return AFS_ENOMEM;
	c->making = true;
	vs_volume_ref(c); /* the caller's; the first is the table's */
	join(c->base, c);
	afs_err err = vs_volume_table_add(c);
	if (err == AFS_EVOLEXISTS && vanished(c->part, c->id))
		err = vs_volume_table_add(c);
	if (err) {
		vs_volume_unref(c);
		vs_volume_unref(c);
		return err;
	}
	uint64_t seq = 0;
	err = vs_volume_lock(v, false);
	if (!err) {
		err = make_locked(v, c, want, now, &seq);
		vs_volume_unlock(v);
	}
	if (!err)
		err = vs_volume_settle(v, seq);
	if (err) {
		give_up(c);
		return err;
	}
	log_info("vs.clone.made volume=%u clone=%u name=%s part=%s", v->id, c->id, LOG_SAFE(want->name),
		v->part->name);
	*out = c;
	return AFS_OK;
}

static void full_name(char out[AFS_VOLNAME_MAX + 1], const struct vs_header *h, enum afs_voltype type)
{
	static const char *const suffix[] = {"", ".readonly", ".backup"};
	char name[AFS_VOLNAME_MAX + 16];
	snprintf(name, sizeof(name), "%s%s", h->name, suffix[type]);
	snprintf(out, AFS_VOLNAME_MAX + 1, "%.*s", AFS_VOLNAME_MAX, name);
}

static afs_err refresh_locked(struct vs_volume *v, struct vs_volume *c, wall_ns now, uint64_t *seq)
{
	TRY(vs_clone_view_locked(c));
	struct vs_header want = {.id = c->id, .type = c->h.type};
	full_name(want.name, &v->h, c->h.type);
	struct vs_header h = header_of(&v->h, &want, now);
	int64_t epoch = v->epoch;
	h.copy = c->h.copy;
	h.in_service = true;
	h.destroy_me = false;
	TRY(name_clone(v, &h, now, seq));
	vs_vnode_forget_all(c);
	c->h = h;
	c->epoch = epoch;
	v->reclaim.wanted = true;
	return AFS_OK;
}

/* The clone is one of the group that `v` had before a restore: make it anew. */
static afs_err replace(struct vs_volume *v, struct vs_volume *c, wall_ns now)
{
	struct vs_header old, src, put = {.in_service = true};
	struct vs_volume *made;
	TRY(vs_volume_header(c, &old));
	TRY(vs_volume_header(v, &src));
	if (old.parent != src.parent)
		return AFS_EXDEV;
	full_name(old.name, &src, old.type);
	TRY(vs_volume_delete(c));
	TRY(vs_clone_make(v, &old, now, &made));
	put.copy = old.copy;
	afs_err err = vs_volume_set_header(made, &put, VS_H_IN_SERVICE | VS_H_DESTROY_ME | VS_H_COPY);
	vs_volume_unref(made);
	return err;
}

afs_err vs_clone_refresh(struct vs_volume *v, struct vs_volume *c, wall_ns now)
{
	uint64_t seq = 0;
	if (vs_volume_is_clone(v) || !vs_volume_is_clone(c) || v->part != c->part)
		return AFS_EXDEV;
	TRY(vs_volume_lock(v, false));
	bool shared = c->base == v;
	afs_err err = shared ? refresh_locked(v, c, now, &seq) : AFS_OK;
	vs_volume_unlock(v);
	if (!shared)
		return replace(v, c, now);
	if (!err)
		err = vs_volume_settle(v, seq);
	if (!err)
		log_info("vs.clone.refreshed volume=%u clone=%u", v->id, c->id);
	return err;
}

/* --- deleting ------------------------------------------------------------------------- */

static afs_err delete_locked(struct vs_volume *c, char aside[48])
{
	struct vs_volume *base = c->base;
	struct vs_partition *p = c->part;
	if (c->deleted)
		return AFS_ENOVOL;
	if (!base->broken)
		TRY(vs_volume_open_locked(base));
	bool last = base->headless && list_first(&base->clones) == &c->clone_link &&
		    c->clone_link.next == &base->clones;
	if (last || base->broken) { /* nobody is left, or nobody can tell: the whole of it goes with the last */
		if (!last)
			return AFS_EVSALVAGE;
		snprintf(aside, 48, "%u.%u.gone", c->id, atomic_fetch_add(&p->tmp_serial, 1));
		vs_volume_shut_locked(base);
		if (renameat(p->vol_fd, base->folder, p->tmp_fd, aside) != 0)
			return log_error(vs_err_of_errno(errno), "vs.volume.rename path=%s/vol/%s errno=%d", p->path,
				base->folder, errno);
	} else {
		TRY(vs_err_of_db(db_run(base->db, Q_VOLUME_DEL, DB_INT(c->id))));
		(void)vs_volume_committed_locked(base);
		base->reclaim.wanted = true;
	}
	unlink_clone(p, c->id);
	vs_vnode_forget_all(c);
	list_remove(&c->clone_link);
	c->deleted = true;
	return AFS_OK;
}

afs_err vs_clone_delete(struct vs_volume *c) NO_TSA
{
	char aside[48] = "";
	struct vs_volume *base = vs_base_lock(c);
	afs_err err = delete_locked(c, aside);
	uint64_t seq = atomic_load(&base->committed);
	mtx_unlock(&base->lock);
	if (err)
		return err;
	vs_volume_table_remove(c);
	log_info("vs.volume.deleted volume=%u part=%s", c->id, c->part->name);
	if (!aside[0])
		return vs_volume_settle(c, seq);
	afs_err left = vs_remove_tree(c->part->tmp_fd, aside);
	if (left)
		log_warn("vs.volume.left path=%s/tmp/%s err=%s text=\"removed at the next start\"", c->part->path, aside,
			afs_err_name(left));
	return AFS_OK;
}

/* --- groups without a read-write volume ----------------------------------------------- */

afs_err vs_headless_new(struct vs_volume *v, struct vs_volume **out)
{
	struct vs_volume *h = vs_volume_alloc(v->part, v->id);
	struct stat st;
	if (!h)
		return AFS_ENOMEM;
	h->headless = true;
	for (unsigned n = 1;; n++) {
		snprintf(h->folder, sizeof(h->folder), "%u.%u", v->id, n);
		if (fstatat(v->part->vol_fd, h->folder, &st, AT_SYMLINK_NOFOLLOW) != 0)
			break;
	}
	vs_volume_ref(v);
	h->before = v; /* who waits for the old base's lock must find it there */
	*out = h;
	return AFS_OK;
}

void vs_headless_adopt_locked(struct vs_volume *v, struct vs_volume *h)
{
	h->reclaim.wanted = true;
	while (!list_empty(&v->clones)) {
		struct vs_volume *c = list_entry(list_first(&v->clones), struct vs_volume, clone_link);
		list_remove(&c->clone_link);
		list_push_back(&h->clones, &c->clone_link);
		vs_vnode_forget_all(c);
		c->loaded = false;
		vs_volume_ref(h);
		if (vs_clone_link(c->part, c->id, h->folder) != AFS_OK)
			log_warn("vs.clone.link volume=%u text=\"set right at the next start\"", c->id);
		c->base = h;
		vs_volume_unref(v); /* the caller has one too */
	}
}

static afs_err attach_clones(struct vs_volume *h)
{
	CLEANUP(db_rows) struct db_rows r = db_query(h->db, Q_CLONE_ALL);
	while (db_next(&r)) {
		afs_volid id = (afs_volid)db_int(&r, 0);
		TRY(vs_clone_link(h->part, id, h->folder));
		TRY(vs_clone_register(h, id));
	}
	return vs_err_of_db(r.err);
}

afs_err vs_headless_attach(struct vs_partition *p, const char *folder) NO_TSA
{
	struct vs_volume *h = vs_volume_alloc(p, (afs_volid)strtoul(folder, NULL, 10));
	if (!h)
		return AFS_ENOMEM;
	h->headless = true;
	snprintf(h->folder, sizeof(h->folder), "%.31s", folder);
	afs_err err = vs_volume_open_locked(h);
	if (!err)
		err = attach_clones(h);
	bool empty = list_empty(&h->clones);
	if (!err && empty) {
		char aside[48];
		vs_volume_shut_locked(h);
		snprintf(aside, sizeof(aside), "%u.%u.gone", h->id, atomic_fetch_add(&p->tmp_serial, 1));
		if (renameat(p->vol_fd, folder, p->tmp_fd, aside) != 0)
			err = vs_err_of_errno(errno);
		else
			err = vs_remove_tree(p->tmp_fd, aside);
	}
	h->reclaim.wanted = true;
	vs_volume_unref(h);
	if (err && err != AFS_ENOMEM) { /* it does not stop the others */
		(void)log_error(err, "vs.partition.group path=%s/vol/%s", p->path, folder);
		err = AFS_OK;
	}
	return err;
}

/* --- read-only becomes read-write ----------------------------------------------------- */

static afs_err convert_locked(struct vs_volume *v, afs_volid id)
{
	struct vs_partition *p = v->part;
	char name[16];
	if (!list_empty(&v->clones))
		return AFS_EXDEV;
	vs_volume_shut_locked(v);
	if (renameat2(p->vol_fd, v->folder, p->vol_fd, name_of(id, name), RENAME_NOREPLACE) != 0)
		return errno == EEXIST ? AFS_EVOLEXISTS
				       : log_error(vs_err_of_errno(errno), "vs.volume.rename path=%s/vol/%s errno=%d",
						 p->path, v->folder, errno);
	v->deleted = true;
	return vs_power(v) && fsync(p->vol_fd) != 0 ? AFS_EIO : AFS_OK;
}

afs_err vs_volume_convert(struct vs_volume *v, wall_ns now)
{
	struct vs_header h;
	struct vs_volume *made;
	(void)now;
	TRY(vs_volume_header(v, &h));
	if (h.type != AFS_VOL_RO || h.parent == h.id)
		return AFS_EINVAL;
	if (vs_volume_is_clone(v))
		return AFS_EXDEV;
	TRY(vs_volume_lock(v, false));
	afs_err err = convert_locked(v, h.parent);
	vs_volume_unlock(v);
	if (err)
		return err;
	vs_volume_table_remove(v);
	TRY(vs_volume_add(v->part, h.parent, false, &made));
	TRY(vs_volume_lock(made, false)); /* opening it finishes the work */
	vs_volume_unlock(made);
	log_info("vs.volume.converted volume=%u was=%u", h.parent, h.id);
	return AFS_OK;
}

/* --- reclaiming ----------------------------------------------------------------------- */

enum { EPOCHS_MAX = 4096, SOME = 128 };

struct eyes { /* epochs in which somebody looks, ascending */
	int64_t *epoch;
	size_t n;
};

static afs_err load_eyes(struct vs_volume *b, struct eyes *e)
{
	CLEANUP(db_rows) struct db_rows r = db_query(b->db, Q_CLONE_ALL);
	while (db_next(&r) && e->n < EPOCHS_MAX)
		e->epoch[e->n++] = db_int(&r, 1);
	return r.err ? vs_err_of_db(r.err) : e->n == EPOCHS_MAX ? AFS_ERANGE : AFS_OK;
}

/* The living see what has not died, unless there are none. */
static bool seen(const struct vs_volume *b, const struct eyes *e, int64_t born, int64_t died)
{
	if (died == VS_ALIVE && !b->headless)
		return true;
	size_t lo = 0, hi = e->n;
	while (lo < hi) { /* the first one not before `born` */
		size_t mid = lo + (hi - lo) / 2;
		if (e->epoch[mid] < born)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < e->n && e->epoch[lo] < died;
}

struct dead {
	int64_t a, b, c, ref; /* key; or vnode, place, born; what it names */
	bool names;
};

/* The next SOME rows of a table: how many there were, and which of them nobody sees. */
static afs_err some_rows(
	struct vs_volume *b, const struct eyes *e, struct dead out[SOME], size_t *dead, size_t *looked)
{
	static const unsigned query[] = {Q_VNODE_SOME, Q_PAGE_SOME, Q_MAP_SOME};
	struct vs_reclaim *at = &b->reclaim;
	*dead = *looked = 0;
	CLEANUP(db_rows)
	struct db_rows r = at->stage == 0 ? db_query(b->db, Q_VNODE_SOME, DB_INT(at->vnode), DB_INT(SOME))
					  : db_query(b->db, query[at->stage], DB_INT(at->vnode), DB_INT(at->page),
						    DB_INT(at->born), DB_INT(SOME));
	while (*looked < SOME && db_next(&r)) {
		++*looked;
		struct dead d = {.a = db_int(&r, 0)};
		int64_t died;
		if (at->stage == 0) {
			d.c = d.a & VS_ALIVE;
			died = db_int(&r, 1);
			d.names = db_int(&r, 2) == VS_INLINE;
			d.ref = db_int(&r, 3);
		} else {
			d.b = db_int(&r, 1);
			d.c = db_int(&r, 2);
			died = db_int(&r, 3);
			d.ref = db_int(&r, 4);
		}
		at->vnode = d.a;
		at->page = d.b;
		at->born = d.c;
		if (!seen(b, e, d.c, died))
			out[(*dead)++] = d;
	}
	return vs_err_of_db(r.err);
}

static afs_err remove_vnode(struct vs_volume *b, const struct dead *d)
{
	int64_t others;
	TRY(vs_err_of_db(db_run(b->db, Q_VNODE_DEL, DB_INT(d->a))));
	if (!d->names)
		return AFS_OK;
	TRY(vs_err_of_db(db_get_int(b->db, Q_VNODE_NAMES_BLOB, &others, DB_INT(d->a >> 31), DB_INT(d->ref))));
	return others ? AFS_OK : vs_err_of_db(db_run(b->db, Q_BLOB_DEL, DB_INT(d->ref)));
}

static afs_err remove_dead(struct vs_tx *tx, int stage, const struct dead *d)
{
	struct vs_volume *b = tx->v;
	if (stage == 0)
		return remove_vnode(b, d);
	TRY(vs_err_of_db(db_run(
		b->db, stage == 1 ? Q_PAGE_DEL : Q_MAP_DEL, DB_INT(d->a), DB_INT(d->b), DB_INT(d->c))));
	return stage == 1 ? vs_err_of_db(db_run(b->db, Q_BLOB_DEL, DB_INT(d->ref)))
			  : vs_tx_unref(tx, (uint64_t)d->ref);
}

static afs_err reclaim_some(struct vs_volume *b, const struct eyes *e, size_t *looked)
{
	struct dead dead[SOME];
	size_t n;
	int stage = b->reclaim.stage;
	TRY(some_rows(b, e, dead, &n, looked));
	if (!n)
		return AFS_OK;
	TRY(vs_volume_mark_dirty_locked(b)); /* files go after their rows */
	CLEANUP(vs_tx) struct vs_tx tx;
	vs_tx_init(&tx, b, 0);
	TRY(vs_err_of_db(db_begin(b->db, &tx.db)));
	for (size_t i = 0; i < n; i++)
		TRY(remove_dead(&tx, stage, &dead[i]));
	TRY(vs_err_of_db(db_commit(&tx.db)));
	(void)vs_volume_committed_locked(b);
	for (size_t i = 0; i < tx.gone_n; i++)
		vs_volume_reap_later(b, tx.gone[i]);
	return AFS_OK;
}

void vs_reclaim_locked(struct vs_volume *b, unsigned most)
{
	struct vs_reclaim *at = &b->reclaim;
	CLEANUP(heap) int64_t *epochs = NULL;
	struct eyes e = {0};
	if (!at->running && !at->wanted)
		return;
	if (!at->running)
		*at = (struct vs_reclaim){.running = true, .vnode = -1};
	epochs = mem_new_array(EPOCHS_MAX, int64_t);
	e.epoch = epochs;
	if (!epochs || load_eyes(b, &e) != AFS_OK)
		return; /* again in the next round; the database has logged why */
	for (unsigned looked = 0; looked < most;) {
		size_t n = 0;
		if (reclaim_some(b, &e, &n) != AFS_OK) {
			at->running = false;
			at->wanted = true; /* from the beginning */
			return;
		}
		looked += (unsigned)n;
		if (n == SOME)
			continue;
		at->vnode = -1;
		at->page = at->born = 0;
		if (++at->stage > 2) {
			at->running = false;
			return;
		}
	}
}
