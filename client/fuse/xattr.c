/* SPDX-License-Identifier: BSD-2-Clause
 * What has no place in stat, by the names that kafs gave it (cache-manager.md §14). */
#include "client/fuse/front.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

static const char all[] = "afs.acl\0afs.cell\0afs.fid\0afs.volume";

static void reply_value(fuse_req_t req, const char *p, size_t n, size_t size)
{
	if (size == 0)
		fuse_reply_xattr(req, n);
	else if (n > size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, p, n);
}

void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct front *f = req_front(req);
	if (strncmp(name, "afs.", 4) != 0) {
		fuse_reply_err(req, ENODATA);
		return;
	}
	struct cm_vnode *v;
	afs_err err = node_vnode(f, node_of(f, ino), req_uid(req), &v);
	if (err) {
		reply_err(req, err);
		return;
	}
	if (strcmp(name, "afs.acl") == 0) {
		CLEANUP(str) char *text = NULL;
		err = cm_acl_get(v, req_uid(req), &text);
		if (err)
			reply_err(req, err);
		else
			reply_value(req, text, strlen(text), size);
	} else if (strcmp(name, "afs.cell") == 0) {
		reply_value(req, v->vol->cell->name, strlen(v->vol->cell->name), size);
	} else if (strcmp(name, "afs.fid") == 0) {
		char text[40];
		int n = snprintf(
			text, sizeof(text), "%x:%x:%x", v->fid.Volume, v->fid.Vnode, v->fid.Unique);
		reply_value(req, text, (size_t)n, size);
	} else if (strcmp(name, "afs.volume") == 0) {
		struct client_volume s;
		err = cm_volume_status(f->cm, v, req_uid(req), &s);
		if (err)
			reply_err(req, err);
		else
			reply_value(req, s.name, strlen(s.name), size);
	} else {
		fuse_reply_err(req, strncmp(name, "afs.yfs.", 8) == 0 ? EOPNOTSUPP : ENODATA);
	}
}

void op_setxattr(
	fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags)
{
	struct front *f = req_front(req);
	struct cm_vnode *v;
	if (strcmp(name, "afs.acl") != 0) {
		fuse_reply_err(req, strncmp(name, "afs.", 4) == 0 ? EPERM : EOPNOTSUPP);
		return;
	}
	if (flags & XATTR_CREATE) { /* it is always there */
		fuse_reply_err(req, EEXIST);
		return;
	}
	if (size && !value[size - 1])
		size--;
	if (memchr(value, 0, size)) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	CLEANUP(str) char *text = mem_strndup(value, size);
	afs_err err = text ? node_vnode(f, node_of(f, ino), req_uid(req), &v) : AFS_ENOMEM;
	if (!err)
		err = cm_acl_set(v, req_uid(req), text);
	reply_err(req, err);
}

void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	(void)ino;
	reply_value(req, all, sizeof(all), size);
}

void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	(void)ino;
	fuse_reply_err(req, strncmp(name, "afs.", 4) == 0 ? EPERM : ENODATA);
}
