/* SPDX-License-Identifier: BSD-2-Clause
 * The table of transactions.  One call has a transaction at a time; the others wait their turn. */
#include "fileserver/vol/vol_trans.h"

#include <stdio.h>
#include <string.h>

void vol_trans_init(struct vol_trans_table *t)
{
	*t = (struct vol_trans_table){.next = 1};
	mtx_init(&t->lock, RANK_VOL_TRANS);
	cond_init(&t->unclaimed);
	list_init(&t->all);
}

void vol_trans_fini(struct vol_trans_table *t)
{
	cond_fini(&t->unclaimed);
	mtx_fini(&t->lock);
}

static struct vol_trans *find_locked(struct vol_trans_table *t, int32_t tid) REQUIRES(t->lock)
{
	list_each(e, &t->all)
	{
		struct vol_trans *tr = list_entry(e, struct vol_trans, link);
		if (tr->tid == tid)
			return tr;
	}
	return NULL;
}

static bool holds_locked(struct vol_trans_table *t, uint32_t volid, int32_t partition) REQUIRES(t->lock)
{
	list_each(e, &t->all)
	{
		const struct vol_trans *tr = list_entry(e, struct vol_trans, link);
		if (tr->volid == volid && tr->partition == partition)
			return true;
	}
	return false;
}

static void claim_locked(struct vol_trans *tr, const char *proc)
{
	tr->claimed = true;
	tr->used_at = clk_wall();
	if (proc)
		snprintf(tr->proc, sizeof(tr->proc), "%s", proc);
}

afs_err vol_trans_begin(struct vol_trans_table *t, uint32_t volid, int32_t partition, int32_t iflags,
	const char *proc, mono_ns now, struct vol_trans **out)
{
	struct vol_trans *tr = mem_new(struct vol_trans);
	if (!tr)
		return AFS_ENOMEM;
	*tr = (struct vol_trans){.volid = volid, .partition = partition, .iflags = iflags,
		.created = clk_wall(), .used = now};
	afs_err err = AFS_OK;
	mtx_lock(&t->lock);
	if (holds_locked(t, volid, partition)) {
		err = AFS_EVOLTRANS;
	} else if (t->count >= VOL_TRANS_MAX) {
		err = AFS_ENOMORE;
	} else {
		tr->tid = t->next;
		t->next = t->next == INT32_MAX ? 1 : t->next + 1;
		t->count++;
		claim_locked(tr, proc);
		list_push_back(&t->all, &tr->link);
	}
	mtx_unlock(&t->lock);
	if (err) {
		mem_free(tr);
		return err;
	}
	*out = tr;
	return AFS_OK;
}

afs_err vol_trans_claim(struct vol_trans_table *t, int32_t tid, const char *proc, bool even_deleted,
	struct vol_trans **out)
{
	afs_err err = AFS_OK;
	mtx_lock(&t->lock);
	struct vol_trans *tr;
	while ((tr = find_locked(t, tid)) && tr->claimed)
		cond_wait(&t->unclaimed, &t->lock);
	if (!tr || (tr->deleted && !even_deleted))
		err = AFS_ENOENT;
	else
		claim_locked(tr, proc);
	mtx_unlock(&t->lock);
	if (!err)
		*out = tr;
	return err;
}

void vol_trans_release(struct vol_trans_table *t, struct vol_trans *tr, mono_ns now)
{
	mtx_lock(&t->lock);
	tr->claimed = false;
	tr->used = now;
	tr->used_at = clk_wall();
	cond_broadcast(&t->unclaimed);
	mtx_unlock(&t->lock);
}

void vol_trans_remove(struct vol_trans_table *t, struct vol_trans *tr)
{
	mtx_lock(&t->lock);
	list_remove(&tr->link);
	t->count--;
	cond_broadcast(&t->unclaimed);
	mtx_unlock(&t->lock);
}

struct vol_trans *vol_trans_claim_idle(struct vol_trans_table *t, mono_ns before)
{
	struct vol_trans *found = NULL;
	mtx_lock(&t->lock);
	list_each(e, &t->all)
	{
		struct vol_trans *tr = list_entry(e, struct vol_trans, link);
		if (!tr->claimed && (before == MONO_NEVER || tr->used < before)) {
			claim_locked(tr, NULL);
			found = tr;
			break;
		}
	}
	mtx_unlock(&t->lock);
	return found;
}

bool vol_trans_holds(struct vol_trans_table *t, uint32_t volid, int32_t partition)
{
	mtx_lock(&t->lock);
	bool yes = holds_locked(t, volid, partition);
	mtx_unlock(&t->lock);
	return yes;
}

unsigned vol_trans_monitor(struct vol_trans_table *t, struct transDebugInfo *out, unsigned max)
{
	unsigned n = 0, all;
	mtx_lock(&t->lock);
	all = t->count;
	list_each(e, &t->all)
	{
		const struct vol_trans *tr = list_entry(e, struct vol_trans, link);
		if (n == max)
			break;
		struct transDebugInfo *d = &out[n++];
		*d = (struct transDebugInfo){.tid = tr->tid, .time = clk_wire_sec(tr->used_at),
			.creationTime = clk_wire_sec(tr->created), .volid = tr->volid,
			.partition = tr->partition, .iflags = tr->iflags, .vflags = tr->vflags,
			.tflags = tr->deleted, .callValid = tr->claimed};
		memcpy(d->lastProcName, tr->proc, VOL_PROC_NAME);
	}
	mtx_unlock(&t->lock);
	return all;
}
