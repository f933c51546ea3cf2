/* SPDX-License-Identifier: BSD-2-Clause
 * ACLs as text between users and servers.  What comes from a server is counted bytes that must end
 * with one NUL (SA-2024-002); what goes there ends with it whether the user sent it or not. */
#include "client/cm/cm.h"
#include "client/cm/stubs.h"

#include <string.h>

afs_err cm_acl_get(struct cm_vnode *v, uid_t uid, char **text)
{
	if (v->vol->id == 0)
		return AFS_ENOTSUP;
	struct cm_ident *id = cm_ident_get(v->cm, v->vol->cell, uid);
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, 16 * 1024);
	struct fs_fetch_acl_in in = {v->fid};
	struct fs_fetch_acl_out out = {0};
	struct cm_try t = {.cm = v->cm, .vol = v->vol, .ident = id, .res.arena = &arena};
	while (cm_try(&t)) {
		arena_fini(&arena);
		t.err = fs_call_fetch_acl(t.conn, &in, &out, &t.res);
	}
	afs_err err = cm_try_end(&t);
	cm_ident_unref(v->cm, id);
	TRY(err);
	const uint8_t *p = out.AccessList.p;
	uint32_t n = out.AccessList.len;
	if (!n || p[n - 1] != 0 || memchr(p, 0, n - 1))
		return AFS_EPROTOCOL;
	*text = mem_strndup((const char *)p, n - 1);
	return *text ? AFS_OK : AFS_ENOMEM;
}

afs_err cm_acl_set(struct cm_vnode *v, uid_t uid, const char *text)
{
	size_t n = strlen(text) + 1;
	if (n < 2 || n > AFS_ACL_TEXT_MAX)
		return n < 2 ? AFS_EINVAL : AFS_ETOOBIG;
	if (v->vol->id == 0 || cm_volume_is_ro(v->vol))
		return AFS_EROFS;
	struct cm_ident *id = cm_ident_get(v->cm, v->vol->cell, uid);
	struct cm_stamp stamp = cm_stamp(v->cm, v->vol, v);
	struct fs_store_acl_in in = {v->fid, {(const uint8_t *)text, (uint32_t)n}};
	struct fs_store_acl_out out = {0};
	struct cm_try t = {.cm = v->cm, .vol = v->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_store_acl(t.conn, &in, &out, &t.res);
	afs_err err = cm_try_end(&t);
	if (err == AFS_EOPCODE) { /* servers from before StoreACL had a number of its own */
		struct fs_old_store_acl_in old_in = {v->fid, in.AccessList};
		struct fs_old_store_acl_out old_out = {0};
		struct cm_try o = {.cm = v->cm, .vol = v->vol, .ident = id};
		while (cm_try(&o))
			o.err = fs_call_old_store_acl(o.conn, &old_in, &old_out, &o.res);
		err = cm_try_end(&o);
		out.OutStatus = old_out.OutStatus;
		t.sent = o.sent;
	}
	if (!err) {
		mtx_lock(&v->lock);
		cm_merge_locked(v, id, &out.OutStatus, NULL, &stamp, t.sent, 0);
		v->promise = 0; /* other users' rights changed too; ask when needed */
		v->rights_n = 0;
		cm_event(v, CM_EV_ATTR | CM_EV_NAMES);
		mtx_unlock(&v->lock);
	}
	cm_ident_unref(v->cm, id);
	return err;
}
