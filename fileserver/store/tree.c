/* SPDX-License-Identifier: BSD-2-Clause
 * All living vnodes of a group in memory, with what their directories say of them. */
#include "fileserver/store/internal.h"

#include <string.h>

void vs_tree_cleanup(struct vs_tree *t)
{
	mem_free(t->node);
	*t = (struct vs_tree){0};
}

struct vs_tree_node *vs_tree_find(const struct vs_tree *t, uint32_t vnode)
{
	size_t lo = 0, hi = t->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (t->node[mid].fid.vnode < vnode)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->n && t->node[lo].fid.vnode == vnode ? &t->node[lo] : NULL;
}

static afs_err add(struct vs_tree *t, const struct vs_row *row)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 256;
		struct vs_tree_node *grown = mem_resize(t->node, t->cap, cap, sizeof(*grown));
		if (!grown)
			return AFS_ENOMEM;
		t->node = grown;
		t->cap = cap;
	}
	t->node[t->n++] = (struct vs_tree_node){
		.fid = row->st.fid,
		.parent = row->st.parent,
		.type = row->st.type,
		.kind = row->kind,
		.links = row->st.links,
		.length = row->st.length,
		.born = row->born,
		.content = row->content,
	};
	return AFS_OK;
}

afs_err vs_tree_load(
	struct db *db, int64_t epoch, struct vs_tree *t, void (*bad)(void *ctx, int64_t key), void *ctx)
{
	CLEANUP(db_rows) struct db_rows r = db_query(db, Q_VNODE_ALL, DB_INT(epoch));
	while (db_next(&r)) {
		struct vs_row row;
		struct vs_acl acl;
		bool twice = t->n && t->node[t->n - 1].fid.vnode == (uint32_t)(db_int(&r, 0) >> 31);
		if (vs_row_read(&r, &row, &acl) == AFS_OK && !twice)
			TRY(add(t, &row));
		else if (bad)
			bad(ctx, db_int(&r, 0));
	}
	return vs_err_of_db(r.err);
}

struct vs_tree_node *vs_tree_name(
	struct vs_tree *t, struct vs_tree_node *dir, const struct vs_dir_entry *e)
{
	struct vs_tree_node *to = vs_tree_find(t, e->vnode);
	if (!to || to->fid.unique != e->unique)
		return NULL;
	if (to->names++ == 0)
		to->named_in = dir->fid;
	else if (to->named_in.vnode != dir->fid.vnode)
		to->two_dirs = true;
	dir->subdirs += to->type == AFS_DIR;
	return to;
}

void vs_tree_reach(struct vs_tree *t)
{
	struct vs_tree_node *root = vs_tree_find(t, 1);
	if (root)
		root->reached = true;
	for (size_t i = 0; i < t->n; i++) {
		/* up to something known, then mark the same way; a loop never gets there */
		struct vs_tree_node *at = &t->node[i];
		size_t steps = 0;
		while (at && !at->reached && at->names && steps++ <= t->n)
			at = vs_tree_find(t, at->named_in.vnode);
		if (!at || !at->reached)
			continue;
		for (at = &t->node[i]; !at->reached; at = vs_tree_find(t, at->named_in.vnode))
			at->reached = true;
	}
}
