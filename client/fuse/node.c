/* SPDX-License-Identifier: BSD-2-Clause
 * Nodes: made by lookups, gone when the kernel forgets them and nothing hangs on them. */
#include "client/fuse/front.h"

#include <string.h>

static uint64_t key_hash(const struct front *f, const struct cm_vnode *v, const struct fnode *ctx)
{
	uint64_t words[2] = {(uintptr_t)v, (uintptr_t)ctx};
	return map_hash_bytes(&f->keys, words, sizeof(words));
}
static uint64_t vnode_hash(const struct front *f, const struct cm_vnode *v)
{
	return map_hash_u64(&f->vnodes, (uintptr_t)v);
}

void nodes_init(struct front *f)
{
	mtx_init(&f->lock, RANK_FUSE);
	map_init(&f->keys);
	map_init(&f->vnodes);
	list_init(&f->files);
	list_init(&f->dirs);
	f->root = (struct fnode){.key = cm_vnode_ref(f->cm->root),
		.vnode = cm_vnode_ref(f->cm->root),
		.mount = true,
		.lookups = 1,
		.held = 1};
	map_insert(&f->vnodes, &f->root.by_vnode, vnode_hash(f, f->root.vnode));
}

void nodes_fini(struct front *f)
{
	size_t cursor = 0;
	for (struct map_node *e = map_walk(&f->keys, &cursor, NULL), *next; e; e = next) {
		next = map_walk(&f->keys, &cursor, e->next);
		struct fnode *n = container_of(e, struct fnode, by_key);
		cm_vnode_unref(n->key);
		if (n->vnode)
			cm_vnode_unref(n->vnode);
		mem_free(n);
	}
	cm_vnode_unref(f->root.key);
	cm_vnode_unref(f->root.vnode);
	map_fini(&f->keys);
	map_fini(&f->vnodes);
	mtx_fini(&f->lock);
}

struct fnode *node_of(struct front *f, fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? &f->root : (struct fnode *)(uintptr_t)ino;
}

static struct fnode *find_locked(struct front *f, const struct cm_vnode *v, const struct fnode *ctx,
	bool mount, uint64_t h) REQUIRES(f->lock)
{
	for (struct map_node *e = map_first(&f->keys, h); e; e = map_next(e)) {
		struct fnode *n = container_of(e, struct fnode, by_key);
		if (n->key == v && n->ctx == ctx && n->mount == mount)
			return n;
	}
	return NULL;
}

struct fnode *node_get(
	struct front *f, struct fnode *parent, struct cm_vnode *v, bool dir, bool mount)
{
	struct fnode *ctx = dir || mount ? (parent->mount ? parent : parent->ctx) : NULL;
	uint64_t h = key_hash(f, v, ctx);
	mtx_lock(&f->lock);
	struct fnode *n = find_locked(f, v, ctx, mount, h);
	if (!n && (n = mem_new(struct fnode))) {
		*n = (struct fnode){.key = v,
			.vnode = mount ? NULL : v,
			.ctx = ctx,
			.mount = mount,
			.generation = ++f->generation,
			.foreign = atomic_load(&v->foreign)};
		if (!map_insert(&f->keys, &n->by_key, h)) {
			mem_free(n);
			n = NULL;
		} else if (!mount && !map_insert(&f->vnodes, &n->by_vnode, vnode_hash(f, v))) {
			map_remove(&f->keys, &n->by_key);
			mem_free(n);
			n = NULL;
		} else {
			cm_vnode_ref(v);
			if (!mount)
				cm_vnode_ref(v);
			if (ctx)
				ctx->held++;
		}
	}
	if (n)
		n->lookups++;
	mtx_unlock(&f->lock);
	return n;
}

/* Takes n out of the tables if nothing needs it; gives what else is to be let go, n first. */
static struct fnode *remove_if_unused(struct front *f, struct fnode *n) REQUIRES(f->lock)
{
	if (n->lookups || n->held || n == &f->root)
		return NULL;
	map_remove(&f->keys, &n->by_key);
	if (n->vnode)
		map_remove(&f->vnodes, &n->by_vnode);
	return n;
}

static void free_chain(struct front *f, struct fnode *n)
{
	while (n) {
		struct fnode *ctx = n->ctx, *next = NULL;
		cm_vnode_unref(n->key);
		if (n->vnode)
			cm_vnode_unref(n->vnode);
		mem_free(n);
		if (ctx) {
			mtx_lock(&f->lock);
			ctx->held--;
			next = remove_if_unused(f, ctx);
			mtx_unlock(&f->lock);
		}
		n = next;
	}
}

void node_forget(struct front *f, struct fnode *n, uint64_t lookups)
{
	mtx_lock(&f->lock);
	n->lookups -= MIN(lookups, n->lookups);
	struct fnode *gone = remove_if_unused(f, n);
	mtx_unlock(&f->lock);
	free_chain(f, gone);
}

void node_hold(struct front *f, struct fnode *n) { node_hold2(f, n, NULL); }
void node_drop(struct front *f, struct fnode *n) { node_drop2(f, n, NULL); }

void node_hold2(struct front *f, struct fnode *a, struct fnode *b)
{
	mtx_lock(&f->lock);
	a->held++;
	if (b)
		b->held++;
	mtx_unlock(&f->lock);
}

void node_drop2(struct front *f, struct fnode *a, struct fnode *b)
{
	mtx_lock(&f->lock);
	a->held--;
	if (b)
		b->held--;
	struct fnode *gone_a = remove_if_unused(f, a),
		     *gone_b = b && b != a ? remove_if_unused(f, b) : NULL;
	mtx_unlock(&f->lock);
	free_chain(f, gone_a);
	free_chain(f, gone_b);
}

afs_err node_vnode(struct front *f, struct fnode *n, uid_t uid, struct cm_vnode **out)
{
	mtx_lock(&f->lock);
	struct cm_vnode *v = n->vnode;
	mtx_unlock(&f->lock);
	if (v) {
		*out = v;
		return AFS_OK;
	}
	struct cm_vnode *root;
	TRY(cm_mount_follow(n->key, uid, &root));
	mtx_lock(&f->lock);
	/* Once resolved a node stays so: what the kernel keeps below it belongs to that volume.  When the
	 * mount point comes to lead elsewhere, its name is looked up again and gives another node. */
	if (!n->vnode && map_insert(&f->vnodes, &n->by_vnode, vnode_hash(f, root))) {
		n->vnode = root;
		n->foreign = atomic_load(&root->foreign);
		root = NULL;
	}
	v = n->vnode;
	mtx_unlock(&f->lock);
	if (root)
		cm_vnode_unref(root);
	*out = v;
	return v ? AFS_OK : AFS_ENOMEM;
}

struct fnode **nodes_of(struct front *f, const struct cm_vnode *v, size_t *count)
{
	size_t n = 0;
	uint64_t h = vnode_hash(f, v);
	mtx_lock(&f->lock);
	for (struct map_node *e = map_first(&f->vnodes, h); e; e = map_next(e))
		n += container_of(e, struct fnode, by_vnode)->vnode == v;
	struct fnode **all = n ? mem_new_array(n, struct fnode *) : NULL;
	n = 0;
	for (struct map_node *e = map_first(&f->vnodes, h); e && all; e = map_next(e)) {
		struct fnode *node = container_of(e, struct fnode, by_vnode);
		if (node->vnode != v)
			continue;
		node->held++;
		all[n++] = node;
	}
	mtx_unlock(&f->lock);
	*count = n;
	return all;
}
