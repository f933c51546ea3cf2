/* SPDX-License-Identifier: BSD-2-Clause
 * Status and promises: taking them in, trusting them, giving them up. */
#include "client/cm/cm.h"
#include "client/cm/stubs.h"

#include "cell/base/log.h"

#include <string.h>

#define PROMISE_MARGIN SEC(30) /* not used to its last second */
#define MISS_SOON SEC(2)

/* --- promises ----------------------------------------------------------------------------------- */

struct cm_stamp cm_stamp(const struct cm *cm, const struct cm_volume *vol, const struct cm_vnode *v)
{
	return (struct cm_stamp){
		.vnode = v ? atomic_load(&v->breaks) : UINT32_MAX,
		.volume = atomic_load(&vol->breaks),
		.resets = atomic_load(&cm->resets),
		.strange = atomic_load(&cm->strange),
	};
}

static bool stamp_holds(const struct cm_vnode *v, const struct cm_stamp *s)
{
	if (s->volume != atomic_load(&v->vol->breaks) || s->resets != atomic_load(&v->cm->resets))
		return false;
	/* a stamp of no vnode was taken before the fid was known: any unknown fid may have been it */
	if (s->vnode == UINT32_MAX)
		return s->strange == atomic_load(&v->cm->strange) && atomic_load(&v->breaks) == 0;
	return s->vnode == atomic_load(&v->breaks);
}

bool cm_fresh_locked(const struct cm_vnode *v)
{
	return v->has_status && v->promise > cm_now(v->cm);
}

static void rights_put(struct cm_vnode *v, uint64_t ident, uint32_t rights) REQUIRES(v->lock)
{
	for (unsigned i = 0; i < v->rights_n; i++) {
		if (v->rights[i].ident == ident) {
			v->rights[i].rights = rights;
			return;
		}
	}
	unsigned at =
		v->rights_n < CM_RIGHTS_MAX ? v->rights_n++ : v->rights_next++ % CM_RIGHTS_MAX;
	v->rights[at] = (struct cm_right){ident, rights};
}

uint32_t cm_rights_locked(const struct cm_vnode *v, const struct cm_ident *id, bool *known)
{
	uint64_t number = atomic_load(&id->bad) ? 0 : id->number;
	*known = true;
	for (unsigned i = 0; i < v->rights_n; i++)
		if (v->rights[i].ident == number)
			return v->rights[i].rights;
	*known = number == 0 || v->vol->id == 0; /* the dynamic root is the same for everybody */
	return v->st.AnonymousAccess;
}

void cm_dir_discard_locked(struct cm_vnode *v)
{
	if (!v->dir)
		return;
	v->dir->next_stale = v->stale;
	v->stale = v->dir;
	v->dir = NULL;
	cm_event(v, CM_EV_NAMES);
}

void cm_merge_locked(struct cm_vnode *v, const struct cm_ident *id, const struct AFSFetchStatus *st,
	const struct AFSCallBack *cb, const struct cm_stamp *stamp, mono_ns sent, uint64_t own_dv)
{
	uint64_t dv = fs_status_dv(st);
	bool held = cm_fresh_locked(v);
	/* Replies may overtake each other; under an unbroken promise versions only rise. */
	if (held && dv < v->dv && v->st.FileType == st->FileType)
		return;
	if (!held)
		v->rights_n = 0;
	bool first = !v->has_status, pending = !first && cm_needs_store_locked(v);
	uint64_t old_dv = v->dv, old_length = fs_status_length(&v->st);
	v->st = *st;
	v->dv = dv;
	v->has_status = true;
	v->gone = false;
	rights_put(v, id->number, st->CallerAccess);

	bool expected = first || dv == old_dv || (own_dv && dv == own_dv);
	if (!expected) {
		atomic_fetch_add(&v->foreign, 1);
		cm_event(v, CM_EV_ATTR | CM_EV_DATA);
	}
	if (st->FileType == AFS_FILE) {
		if (own_dv && dv == own_dv && v->data_dv == old_dv && v->cf) {
			v->data_dv = dv;
			cache_file_set_dv(v->cf, dv);
		}
		/* What local programs changed and the server has not got yet stays as they made it. */
		if (!pending) {
			v->length = fs_status_length(st);
			v->cut = UINT64_MAX;
			v->mtime_set = false;
		} else if (!expected && fs_status_length(st) > old_length && v->cut == UINT64_MAX) {
			v->length = MAX(v->length, fs_status_length(st));
		}
	} else if (st->FileType == AFS_DIR && v->dir && dv != v->dir_dv && !v->modifying) {
		cm_dir_discard_locked(v);
	}
	if (cb && cb->ExpirationTime && cb->CallBackType != CB_DROPPED && stamp_holds(v, stamp)) {
		int64_t life = SEC(cb->ExpirationTime);
		v->promise = sent + life - MIN(PROMISE_MARGIN, life / 4);
	}
}

void cm_volsync(struct cm_volume *vol, const struct AFSVolSync *sync)
{
	/* A word-sized hint: the promise of a read-only volume is broken when it is released again. */
	vol->created = sync->spare1;
}

static void forget_promise_locked(struct cm_vnode *v) REQUIRES(v->lock)
{
	v->promise = 0;
	v->rights_n = 0;
	if (v->mount) /* its text may change, and what it leads to */
		v->mount_until = 0;
}

void cm_break(struct cm_vnode *v)
{
	mtx_lock(&v->lock);
	atomic_fetch_add(&v->breaks, 1);
	forget_promise_locked(v);
	cm_event(v, CM_EV_ATTR | CM_EV_DATA | (v->dir || v->stale ? CM_EV_NAMES : 0));
	mtx_unlock(&v->lock);
}

void cm_gone_quiet_locked(struct cm_vnode *v)
{
	v->gone = true;
	forget_promise_locked(v);
	cm_dir_discard_locked(v);
}

void cm_gone_locked(struct cm_vnode *v)
{
	cm_gone_quiet_locked(v);
	cm_event(v, CM_EV_ATTR | CM_EV_DATA);
}

/* --- asking --------------------------------------------------------------------------------------- */

static afs_err fetch(struct cm_vnode *v, struct cm_ident *id) REQUIRES(v->lock)
{
	struct cm *cm = v->cm;
	struct cm_stamp stamp = cm_stamp(cm, v->vol, v);
	v->fetching = true;
	mtx_unlock(&v->lock);
	struct fs_fetch_status_in in = {.Fid = v->fid};
	struct fs_fetch_status_out out = {0};
	struct cm_try t = {.cm = cm, .vol = v->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_fetch_status(t.conn, &in, &out, &t.res);
	afs_err err = cm_try_end(&t);
	mtx_lock(&v->lock);
	v->fetching = false;
	cond_broadcast(&v->changed);
	if (!err) {
		cm_merge_locked(v, id, &out.OutStatus, &out.CallBack, &stamp, t.sent, 0);
		cm_volsync(v->vol, &out.Sync);
	} else if (err == AFS_ENOVNODE) {
		cm_gone_locked(v);
		err = AFS_ENOENT;
	}
	return err;
}

afs_err cm_status_lock(struct cm_vnode *v, struct cm_ident *id, bool rights) NO_TSA
{
	afs_err err = AFS_OK;
	mtx_lock(&v->lock);
	for (bool asked = false;; asked = true) {
		bool known = true;
		if (v->has_status && rights)
			cm_rights_locked(v, id, &known);
		if (v->gone) {
			err = AFS_ENOENT;
			break;
		}
		/* What was asked for just now serves this caller even when a break came meanwhile. */
		if (v->has_status && known && (asked || cm_fresh_locked(v)))
			return AFS_OK;
		if (asked) { /* a token that was refused: whatever anonymous may do was learnt */
			if (v->has_status)
				return AFS_OK;
			err = AFS_EIO;
			break;
		}
		while (v->fetching)
			cond_wait(&v->changed, &v->lock);
		known = true;
		if (v->has_status && rights)
			cm_rights_locked(v, id, &known);
		if (!v->gone && v->has_status && known && cm_fresh_locked(v))
			return AFS_OK;
		err = fetch(v, id);
		if (err)
			break;
	}
	mtx_unlock(&v->lock);
	return err;
}

afs_err cm_status_bulk(struct cm *cm, struct cm_volume *vol, struct cm_ident *id,
	struct cm_vnode *const *v, size_t n)
{
	struct AFSFid fids[FS_BULK_MAX];
	struct cm_stamp stamps[FS_BULK_MAX];
	n = MIN(n, FS_BULK_MAX);
	for (size_t i = 0; i < n; i++) {
		fids[i] = v[i]->fid;
		stamps[i] = cm_stamp(cm, vol, v[i]);
	}
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, 256 * 1024);
	struct fs_inline_bulk_status_in in = {.Fids = {fids, (uint32_t)n}};
	struct fs_inline_bulk_status_out out = {0};
	struct cm_try t = {.cm = cm, .vol = vol, .ident = id, .res.arena = &arena};
	while (cm_try(&t)) {
		arena_fini(&arena);
		t.err = fs_call_inline_bulk_status(t.conn, &in, &out, &t.res);
	}
	TRY(cm_try_end(&t));
	if (out.Statuses.n != n || out.CallBacks.n != n)
		return log_error(AFS_EPROTOCOL, "cm.bulk.wrong_count volume=%u asked=%zu got=%u/%u",
			vol->id, n, out.Statuses.n, out.CallBacks.n);
	for (size_t i = 0; i < n; i++) {
		const struct AFSFetchStatus *st = &out.Statuses.v[i];
		if (st->errorCode || st->InterfaceVersion != 1)
			continue;
		mtx_lock(&v[i]->lock);
		cm_merge_locked(v[i], id, st, &out.CallBacks.v[i], &stamps[i], t.sent, 0);
		mtx_unlock(&v[i]->lock);
	}
	return AFS_OK;
}

/* --- attributes ------------------------------------------------------------------------------------ */

uint64_t cm_ino(const struct cm_vnode *v)
{
	uint64_t high =
		v->fid.Volume ^ (v->vol->cell->index ? (uint32_t)v->vol->cell->number << 20 : 0);
	return high << 32 | v->fid.Vnode;
}

bool cm_is_mount_locked(const struct cm_vnode *v)
{
	return v->has_status && v->st.FileType == AFS_SYMLINK && !(v->st.UnixModeBits & 0111);
}

void cm_attr_locked(const struct cm_vnode *v, struct cm_attr *out)
{
	const struct AFSFetchStatus *st = &v->st;
	bool file = st->FileType == AFS_FILE;
	*out = (struct cm_attr){
		.type = (enum afs_filetype)st->FileType,
		.mode = st->UnixModeBits & 01777, /* never set-id: SA-2007-001 */
		.nlink = v->silly_dir ? 0 : st->LinkCount,
		.owner = st->Owner,
		.group = st->Group,
		.mtime = file && v->mtime_set ? v->mtime : st->ClientModTime,
		.ctime = st->ServerModTime,
		.size = file ? v->length : fs_status_length(st),
		.ino = cm_ino(v),
		.dv = v->dv,
		.until = v->promise,
		.breaks = atomic_load(&v->breaks),
	};
}

afs_err cm_getattr(struct cm_vnode *v, uid_t uid, struct cm_attr *out) NO_TSA
{
	struct cm_ident *id = cm_ident_get(v->cm, v->vol->cell, uid);
	afs_err err = cm_status_lock(v, id, false);
	if (!err) {
		cm_attr_locked(v, out);
		mtx_unlock(&v->lock);
	}
	cm_ident_unref(v->cm, id);
	return err;
}

static afs_err store_status(
	struct cm_vnode *v, struct cm_ident *id, const struct AFSStoreStatus *ss)
{
	struct cm_stamp stamp = cm_stamp(v->cm, v->vol, v);
	struct fs_store_status_in in = {.Fid = v->fid, .InStatus = *ss};
	struct fs_store_status_out out = {0};
	struct cm_try t = {.cm = v->cm, .vol = v->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_store_status(t.conn, &in, &out, &t.res);
	TRY(cm_try_end(&t));
	mtx_lock(&v->lock);
	cm_merge_locked(v, id, &out.OutStatus, NULL, &stamp, t.sent, 0);
	mtx_unlock(&v->lock);
	return AFS_OK;
}

afs_err cm_setattr(
	struct cm_vnode *v, uid_t uid, struct cm_ident *open, const struct cm_setattr *set) NO_TSA
{
	struct cm *cm = v->cm;
	struct cm_ident *id = open ? cm_ident_ref(open) : cm_ident_get(cm, v->vol->cell, uid);
	afs_err err = cm_status_lock(v, id, false);
	if (err)
		goto out;
	struct AFSStoreStatus ss = {0};
	if (set->set_owner && set->owner != v->st.Owner) {
		ss.Mask |= FS_SET_OWNER;
		ss.Owner = set->owner;
	}
	if (set->set_group && set->group != v->st.Group) {
		ss.Mask |= FS_SET_GROUP;
		ss.Group = set->group;
	}
	if (set->set_mode && (set->mode & 07777) != (v->st.UnixModeBits & 07777)) {
		ss.Mask |= FS_SET_MODE;
		ss.UnixModeBits = set->mode & 07777;
	}
	if (set->set_size && v->st.FileType != AFS_FILE)
		err = v->st.FileType == AFS_DIR ? AFS_EISDIR : AFS_EINVAL;
	else if (set->set_size)
		err = cm_cut_locked(v, id, set->size);
	if (set->set_mtime && !err) {
		/* data that waits to be stored takes the time along */
		if (v->st.FileType == AFS_FILE && cm_needs_store_locked(v)) {
			v->mtime = set->mtime;
			v->mtime_set = true;
		} else {
			ss.Mask |= FS_SET_MODTIME;
			ss.ClientModTime = set->mtime;
		}
	}
	bool now = !err && set->set_size && !v->writers;
	mtx_unlock(&v->lock);
	if (!err && now)
		err = cm_store(v, true, false);
	if (!err && ss.Mask)
		err = store_status(v, id, &ss);
out:
	cm_ident_unref(cm, id);
	return err;
}
