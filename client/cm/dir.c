/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads what directory.md §1-6 describes, from a server that may be wrong or hostile: every slot
 * number is compared with the pages that came, a name ends inside its page, chains are bounded by the
 * number of slots.  Rows are taken by walking the hash chains, since that is what decides whether a
 * name can be found; they are put in slot order, which is the order servers list. */
#include "client/cm/dir.h"

#include "cell/base/mem.h"
#include "cell/base/rand.h"
#include "rx/xdr/xdr.h"

#include <string.h>

enum {
	PAGE = 2048,
	SLOT = 32,
	SLOTS = PAGE / SLOT,
	PAGES_MAX = 1023,
	BUCKETS = 128,
	HEADER_SLOTS = 13,
	TAG = 1234,
	ABSENT_MAX = 4096,
};

static uint32_t name_hash(const struct cm_dir *d, const char *s, size_t n)
{
	uint32_t h = d->seed;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)s[i]) * 16777619u;
	return h ^ h >> 15;
}

struct cm_dir *cm_dir_new(uint32_t parent_vnode, uint32_t parent_unique)
{
	struct cm_dir *d = mem_new(struct cm_dir);
	if (!d)
		return NULL;
	d->refs = 1;
	d->seed = rand_u32();
	d->parent_vnode = parent_vnode;
	d->parent_unique = parent_unique;
	return d;
}

void cm_dir_unref(struct cm_dir *d)
{
	if (!d || --d->refs)
		return;
	mem_free(d->rows);
	mem_free(d->names);
	mem_free(d->buckets);
	mem_free(d);
}

static void *copy(const void *p, size_t n, size_t cap, size_t size)
{
	void *q = mem_alloc(cap ? cap : 1, size);
	if (q && n)
		memcpy(q, p, n * size);
	return q;
}

afs_err cm_dir_own(struct cm_dir **d)
{
	struct cm_dir *old = *d;
	if (old->refs == 1)
		return AFS_OK;
	struct cm_dir *c = mem_new(struct cm_dir);
	if (!c)
		return AFS_ENOMEM;
	*c = *old;
	c->refs = 1;
	c->rows = copy(old->rows, old->n, old->cap, sizeof(*old->rows));
	c->names = copy(old->names, old->names_n, old->names_cap, 1);
	c->buckets = old->buckets ? copy(old->buckets, old->mask + 1, old->mask + 1,
					    sizeof(*old->buckets))
				  : NULL;
	if (!c->rows || !c->names || (old->buckets && !c->buckets)) {
		cm_dir_unref(c);
		return AFS_ENOMEM;
	}
	old->refs--;
	*d = c;
	return AFS_OK;
}

struct cm_row *cm_dir_find(const struct cm_dir *d, const char *name, size_t len)
{
	if (!d->buckets)
		return NULL;
	for (uint32_t i = d->buckets[name_hash(d, name, len) & d->mask]; i;
		i = d->rows[i - 1].next) {
		struct cm_row *r = &d->rows[i - 1];
		if (r->len == len && memcmp(d->names + r->name, name, len) == 0)
			return r;
	}
	return NULL;
}

static afs_err grow(struct cm_dir *d, size_t len)
{
	if (d->n == d->cap) {
		uint32_t cap = d->cap ? d->cap * 2 : 8;
		struct cm_row *rows = mem_resize(d->rows, d->cap, cap, sizeof(*rows));
		if (!rows)
			return AFS_ENOMEM;
		d->rows = rows;
		d->cap = cap;
	}
	if (d->names_cap - d->names_n < len + 1) {
		uint32_t cap = MAX(d->names_cap * 2, d->names_n + (uint32_t)len + 64);
		char *names = mem_resize(d->names, d->names_cap, cap, 1);
		if (!names)
			return AFS_ENOMEM;
		d->names = names;
		d->names_cap = cap;
	}
	if (!d->buckets || d->n > d->mask) {
		uint32_t size = d->buckets ? (d->mask + 1) * 2 : 16;
		uint32_t *buckets = mem_new_array(size, uint32_t);
		if (!buckets)
			return AFS_ENOMEM;
		mem_free(d->buckets);
		d->buckets = buckets;
		d->mask = size - 1;
		for (uint32_t i = 0; i < d->n; i++) {
			struct cm_row *r = &d->rows[i];
			if (r->state == CM_ROW_DEAD)
				continue;
			uint32_t *b = &buckets[name_hash(d, d->names + r->name, r->len) & d->mask];
			r->next = *b;
			*b = i + 1;
		}
	}
	return AFS_OK;
}

static afs_err row_add(struct cm_dir *d, const char *name, size_t len, uint32_t vnode,
	uint32_t unique, enum cm_row_state state)
{
	TRY(grow(d, len));
	uint32_t *b = &d->buckets[name_hash(d, name, len) & d->mask];
	d->rows[d->n] = (struct cm_row){.name = d->names_n,
		.next = *b,
		.vnode = vnode,
		.unique = unique,
		.len = (uint8_t)len,
		.state = (uint8_t)state};
	*b = ++d->n;
	memcpy(d->names + d->names_n, name, len);
	d->names[d->names_n + len] = 0;
	d->names_n += (uint32_t)len + 1;
	if (state == CM_ROW_LIVE)
		d->live++;
	else
		d->absent++;
	return AFS_OK;
}

static void row_kill(struct cm_dir *d, struct cm_row *r)
{
	uint32_t *p = &d->buckets[name_hash(d, d->names + r->name, r->len) & d->mask];
	uint32_t me = (uint32_t)(r - d->rows) + 1;
	while (*p != me)
		p = &d->rows[*p - 1].next;
	*p = r->next;
	if (r->state == CM_ROW_LIVE)
		d->live--;
	else
		d->absent--;
	r->state = CM_ROW_DEAD;
	r->shown = false;
}

/* Many edits leave many dead rows.  Places move, which nobody sees: who reads on holds a copy. */
static void pack(struct cm_dir *d)
{
	if (d->n < 64 || d->n < 2 * (d->live + d->absent))
		return;
	uint32_t n = 0, at = 0;
	memset(d->buckets, 0, (d->mask + 1) * sizeof(*d->buckets));
	for (uint32_t i = 0; i < d->n; i++) {
		struct cm_row r = d->rows[i];
		if (r.state == CM_ROW_DEAD)
			continue;
		memmove(d->names + at, d->names + r.name, r.len + 1u);
		r.name = at;
		at += r.len + 1u;
		uint32_t *b = &d->buckets[name_hash(d, d->names + r.name, r.len) & d->mask];
		r.next = *b;
		*b = n + 1;
		d->rows[n++] = r;
	}
	d->n = n;
	d->names_n = at;
}

afs_err cm_dir_add(struct cm_dir *d, const char *name, size_t len, uint32_t vnode, uint32_t unique)
{
	if (len == 0 || len > AFS_NAME_MAX)
		return AFS_EINVAL;
	struct cm_row *old = cm_dir_find(d, name, len);
	if (old)
		row_kill(d, old);
	return row_add(d, name, len, vnode, unique, CM_ROW_LIVE);
}

void cm_dir_remove(struct cm_dir *d, const char *name, size_t len)
{
	struct cm_row *r = cm_dir_find(d, name, len);
	if (r && r->state == CM_ROW_LIVE) {
		row_kill(d, r);
		pack(d);
	}
}

bool cm_dir_show_absent(struct cm_dir *d, const char *name, size_t len)
{
	if (len == 0 || len > AFS_NAME_MAX)
		return false;
	struct cm_row *r = cm_dir_find(d, name, len);
	if (r) {
		r->shown = true;
		return r->state == CM_ROW_ABSENT;
	}
	if (d->absent >= ABSENT_MAX || row_add(d, name, len, 0, 0, CM_ROW_ABSENT) != AFS_OK)
		return false;
	d->rows[d->n - 1].shown = true;
	return true;
}

/* --- the object --------------------------------------------------------------------------------- */

static uint16_t be16(const uint8_t *p) { return be16_get(p); }

struct found {
	uint16_t slot;
};
static int by_slot(const void *a, const void *b)
{
	return (int)((const struct found *)a)->slot - (int)((const struct found *)b)->slot;
}

/* The name of the entry in `slot`, if it ends inside its page; its length, 0 when it is no name. */
static size_t entry_name(const uint8_t *object, uint32_t slot, const char **name)
{
	uint32_t at = slot * SLOT + 12, page_end = (slot / SLOTS + 1) * PAGE;
	size_t n = strnlen((const char *)object + at, page_end - at);
	*name = (const char *)object + at;
	if (n == 0 || n > AFS_NAME_MAX + 1 || at + n >= page_end || memchr(*name, '/', n))
		return 0;
	return n;
}

afs_err cm_dir_parse(const uint8_t *object, size_t n, struct cm_dir **out)
{
	if (n < PAGE || n % PAGE || n / PAGE > PAGES_MAX)
		return AFS_ECORRUPT;
	uint32_t pages = (uint32_t)(n / PAGE), slots = pages * SLOTS;
	for (uint32_t i = 0; i < pages; i++)
		if (be16(object + i * PAGE + 2) != TAG)
			return AFS_ECORRUPT;

	CLEANUP(heap) struct found *found = mem_new_array(slots, struct found);
	if (!found)
		return AFS_ENOMEM;
	uint32_t count = 0;
	for (uint32_t b = 0; b < BUCKETS; b++) {
		uint32_t slot = be16(object + 0xa0 + b * 2);
		while (slot) {
			if (slot >= slots || slot < HEADER_SLOTS || slot % SLOTS == 0 ||
				count >= slots)
				return AFS_ECORRUPT;
			if (object[slot * SLOT] != 1)
				return AFS_ECORRUPT;
			found[count++].slot = (uint16_t)slot;
			slot = be16(object + slot * SLOT + 2);
		}
	}
	qsort(found, count, sizeof(*found), by_slot);

	struct cm_dir *d = cm_dir_new(0, 0);
	if (!d)
		return AFS_ENOMEM;
	afs_err err = AFS_OK;
	for (uint32_t i = 0; i < count && !err; i++) {
		const uint8_t *e = object + found[i].slot * SLOT;
		const char *name;
		size_t len = entry_name(object, found[i].slot, &name);
		uint32_t vnode = be32_get(e + 4), unique = be32_get(e + 8);
		if (!len || (i && found[i].slot == found[i - 1].slot)) {
			err = AFS_ECORRUPT;
		} else if (len == 1 && name[0] == '.') {
			continue;
		} else if (len == 2 && name[0] == '.' && name[1] == '.') {
			d->parent_vnode = vnode;
			d->parent_unique = unique;
		} else if (len > AFS_NAME_MAX) {
			continue; /* 256 bytes: stock servers take it, no program here can name it */
		} else if (cm_dir_find(d, name, len) || vnode == 0) {
			err = AFS_ECORRUPT;
		} else {
			err = row_add(d, name, len, vnode, unique, CM_ROW_LIVE);
		}
	}
	if (err) {
		cm_dir_unref(d);
		return err;
	}
	*out = d;
	return AFS_OK;
}
