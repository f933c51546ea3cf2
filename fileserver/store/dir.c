/* SPDX-License-Identifier: BSD-2-Clause
 * The directory object.  Layout, in slots of 32 bytes: page 0 starts with a page header (pgcount,
 * tag, freecount, bitmap), the page-free map (128 bytes) and the hash table (128 slot numbers);
 * entries follow from slot 13.  Other pages have the page header only.  A set bit in a bitmap is a
 * slot in use; slot numbers count through all pages; slot 0 ends a chain.  Source: directory.md. */
#include "fileserver/store/dir.h"

#include "cell/base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	TAG = 1234,
	OFF_TAG = 2,
	OFF_FREECOUNT = 4,
	OFF_BITMAP = 5,
	OFF_PADDING = 13,
	OFF_MAP = 32,
	OFF_HASH = 160,
	HEADER_SLOTS_0 = 13,
	HEADER_SLOTS = 1,
	PAGE_ABSENT = 64,
	E_NEXT = 2,
	E_VNODE = 4,
	E_UNIQUE = 8,
	E_NAME = 12,
};

static uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}
static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v & 0xffff);
}

/* Bit j is slot j of the page. */
static uint64_t get_bitmap(const uint8_t *page)
{
	uint64_t v = 0;
	for (int i = 8; i-- > 0;)
		v = v << 8 | page[OFF_BITMAP + i];
	return v;
}
static void put_bitmap(uint8_t *page, uint64_t v)
{
	for (int i = 0; i < 8; i++, v >>= 8)
		page[OFF_BITMAP + i] = (uint8_t)v;
}

static uint8_t *page_at(const struct vs_dir *d, uint32_t page)
{
	return d->data + (size_t)page * VS_DIR_PAGE;
}
static uint8_t *slot_at(const struct vs_dir *d, uint32_t slot)
{
	return d->data + (size_t)slot * VS_DIR_SLOT;
}
static void touch(struct vs_dir *d, uint32_t page)
{
	d->dirty[page / 64] |= UINT64_C(1) << (page % 64);
}
static uint32_t header_slots(uint32_t page) { return page ? HEADER_SLOTS : HEADER_SLOTS_0; }
static uint64_t bits(uint32_t j, unsigned n) { return ((UINT64_C(1) << n) - 1) << j; }

unsigned vs_dir_slots(size_t name_len) { return 1 + (unsigned)((name_len + 1 + 15) / VS_DIR_SLOT); }

unsigned vs_dir_hash(const char *name)
{
	uint32_t h = 0;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		h = h * 173 + *c;
	uint32_t t = h & (VS_DIR_BUCKETS - 1);
	return t && h >= UINT32_C(0x80000000) ? VS_DIR_BUCKETS - t : t;
}

void vs_dir_fini(struct vs_dir *d)
{
	mem_free(d->data);
	*d = (struct vs_dir){0};
}

void vs_dir_clean(struct vs_dir *d) { memset(d->dirty, 0, sizeof(d->dirty)); }

afs_err vs_dir_reserve(struct vs_dir *d, uint32_t pages)
{
	if (pages > VS_DIR_MAX_PAGES)
		return AFS_EFBIG;
	if (pages > d->cap) {
		uint32_t cap = d->cap ? d->cap : 1;
		while (cap < pages)
			cap *= 2;
		cap = MIN(cap, VS_DIR_MAX_PAGES);
		uint8_t *data = mem_resize(d->data, d->cap, cap, VS_DIR_PAGE);
		if (!data)
			return AFS_ENOMEM;
		d->data = data;
		d->cap = cap;
	}
	d->pages = pages;
	for (unsigned n = 0; n < ARRAY_SIZE(d->first_fit); n++)
		d->first_fit[n] = VS_DIR_MAP_PAGES;
	return AFS_OK;
}

/* Add the page behind the last, empty. */
static afs_err append_page(struct vs_dir *d)
{
	uint32_t page = d->pages;
	uint16_t fit[VS_DIR_NAME_SLOTS + 1];
	memcpy(fit, d->first_fit, sizeof(fit));
	TRY(vs_dir_reserve(d, page + 1));
	if (page)
		memcpy(d->first_fit, fit, sizeof(fit));
	uint8_t *p = page_at(d, page);
	memset(p, 0, VS_DIR_PAGE);
	put16(p + OFF_TAG, TAG);
	uint32_t used = header_slots(page);
	p[OFF_FREECOUNT] = (uint8_t)(VS_DIR_SLOTS - used);
	put_bitmap(p, bits(0, used));
	if (page == 0)
		memset(p + OFF_MAP, PAGE_ABSENT, VS_DIR_MAP_PAGES);
	if (page < VS_DIR_MAP_PAGES)
		d->data[OFF_MAP + page] = (uint8_t)(VS_DIR_SLOTS - used);
	put16(d->data, d->pages);
	touch(d, 0);
	touch(d, page);
	return AFS_OK;
}

afs_err vs_dir_make(struct vs_dir *d, uint32_t vnode, uint32_t unique, uint32_t parent_vnode,
	uint32_t parent_unique)
{
	d->pages = 0;
	TRY(append_page(d));
	TRY(vs_dir_add(d, ".", vnode, unique));
	return vs_dir_add(d, "..", parent_vnode, parent_unique);
}

afs_err vs_dir_accept(const struct vs_dir *d)
{
	if (d->pages == 0 || d->pages > VS_DIR_MAX_PAGES || get16(d->data) != d->pages)
		return AFS_ECORRUPT;
	for (uint32_t p = 0; p < d->pages; p++) {
		uint64_t head = bits(0, header_slots(p));
		if (get16(page_at(d, p) + OFF_TAG) != TAG ||
			(get_bitmap(page_at(d, p)) & head) != head)
			return AFS_ECORRUPT;
	}
	return AFS_OK;
}

/* Could an entry start at `slot`? */
static bool slot_ok(const struct vs_dir *d, uint32_t slot)
{
	uint32_t page = slot / VS_DIR_SLOTS, j = slot % VS_DIR_SLOTS;
	return page < d->pages && j >= header_slots(page) &&
	       get_bitmap(page_at(d, page)) >> j & 1 && slot_at(d, slot)[0] == 1;
}

/* Bytes from the name of the entry at `slot` to the end of its page. */
static size_t name_room(uint32_t slot)
{
	return VS_DIR_PAGE - (size_t)(slot % VS_DIR_SLOTS) * VS_DIR_SLOT - E_NAME;
}

/* Where the link to `name`'s entry stands (in the table or in an entry), and the entry. */
static afs_err find_link(
	const struct vs_dir *d, const char *name, size_t len, uint8_t **link, uint32_t *slot)
{
	uint8_t *at = d->data + OFF_HASH + 2 * (size_t)vs_dir_hash(name);
	for (uint32_t steps = d->pages * VS_DIR_SLOTS; steps; steps--) {
		uint32_t s = get16(at);
		if (s == 0)
			return AFS_ENOENT;
		if (!slot_ok(d, s))
			return AFS_ECORRUPT;
		uint8_t *e = slot_at(d, s);
		if (len < name_room(s) && memcmp(e + E_NAME, name, len + 1) == 0) {
			if (s % VS_DIR_SLOTS + vs_dir_slots(len) > VS_DIR_SLOTS)
				return AFS_ECORRUPT; /* its slots would leave the page */
			*link = at;
			*slot = s;
			return AFS_OK;
		}
		at = e + E_NEXT;
	}
	return AFS_ECORRUPT; /* a loop */
}

static struct vs_dir_entry entry_at(const struct vs_dir *d, uint32_t slot, size_t len)
{
	const uint8_t *e = slot_at(d, slot);
	return (struct vs_dir_entry){
		.name = (const char *)e + E_NAME,
		.name_len = len,
		.vnode = get32(e + E_VNODE),
		.unique = get32(e + E_UNIQUE),
		.slot = slot,
	};
}

afs_err vs_dir_find(const struct vs_dir *d, const char *name, struct vs_dir_entry *out)
{
	uint8_t *link;
	uint32_t slot;
	size_t len = strlen(name);
	TRY(find_link(d, name, len, &link, &slot));
	*out = entry_at(d, slot, len);
	return AFS_OK;
}

/* Lowest j with n clear bits from j on, or 64. */
static uint32_t fit(uint64_t used, unsigned n)
{
	uint64_t m = ~used;
	for (unsigned i = 1; i < n; i++)
		m &= m >> 1;
	return m ? (uint32_t)__builtin_ctzll(m) : VS_DIR_SLOTS;
}

/* First fit over all pages; appends one when none has room. */
static afs_err find_space(struct vs_dir *d, unsigned n, uint32_t *slot)
{
	uint32_t j;
	uint32_t page = 0;
	for (; page < d->pages && page < VS_DIR_MAP_PAGES; page++) {
		uint8_t free_slots = d->data[OFF_MAP + page];
		if (free_slots >= n && free_slots < PAGE_ABSENT &&
			(j = fit(get_bitmap(page_at(d, page)), n)) < VS_DIR_SLOTS)
			goto found;
	}
	if (page == VS_DIR_MAP_PAGES) {
		for (page = d->first_fit[n]; page < d->pages; page++)
			if ((j = fit(get_bitmap(page_at(d, page)), n)) < VS_DIR_SLOTS)
				break;
		d->first_fit[n] = (uint16_t)page;
		if (page < d->pages)
			goto found;
	}
	TRY(append_page(d));
	page = d->pages - 1;
	j = header_slots(page);
found:
	*slot = page * VS_DIR_SLOTS + j;
	return AFS_OK;
}

afs_err vs_dir_add(struct vs_dir *d, const char *name, uint32_t vnode, uint32_t unique)
{
	size_t len = strlen(name);
	if (len == 0 || strchr(name, '/'))
		return AFS_EINVAL;
	if (len > VS_DIR_NAME_MAX)
		return AFS_ENAMETOOLONG;
	uint8_t *link;
	uint32_t slot;
	afs_err err = find_link(d, name, len, &link, &slot);
	if (err != AFS_ENOENT)
		return err == AFS_OK ? AFS_EEXIST : err;

	unsigned n = vs_dir_slots(len);
	TRY(find_space(d, n, &slot));
	uint32_t page = slot / VS_DIR_SLOTS;
	uint8_t *p = page_at(d, page);
	put_bitmap(p, get_bitmap(p) | bits(slot % VS_DIR_SLOTS, n));
	if (page < VS_DIR_MAP_PAGES)
		d->data[OFF_MAP + page] = (uint8_t)(d->data[OFF_MAP + page] - n);

	uint8_t *head = d->data + OFF_HASH + 2 * (size_t)vs_dir_hash(name);
	uint8_t *e = slot_at(d, slot);
	memset(e, 0, (size_t)n * VS_DIR_SLOT);
	e[0] = 1;
	put16(e + E_NEXT, get16(head));
	put32(e + E_VNODE, vnode);
	put32(e + E_UNIQUE, unique);
	memcpy(e + E_NAME, name, len + 1);
	put16(head, slot);
	touch(d, 0);
	touch(d, page);
	return AFS_OK;
}

afs_err vs_dir_remove(struct vs_dir *d, const char *name)
{
	uint8_t *link;
	uint32_t slot;
	size_t len = strlen(name);
	TRY(find_link(d, name, len, &link, &slot));

	unsigned n = vs_dir_slots(len);
	uint32_t page = slot / VS_DIR_SLOTS;
	uint8_t *p = page_at(d, page), *e = slot_at(d, slot);
	put16(link, get16(e + E_NEXT));
	touch(d, (uint32_t)((size_t)(link - d->data) / VS_DIR_PAGE));
	memset(e, 0, (size_t)n * VS_DIR_SLOT);
	put_bitmap(p, get_bitmap(p) & ~bits(slot % VS_DIR_SLOTS, n));
	if (page < VS_DIR_MAP_PAGES)
		d->data[OFF_MAP + page] = (uint8_t)(d->data[OFF_MAP + page] + n);
	else
		for (unsigned i = 0; i < ARRAY_SIZE(d->first_fit); i++)
			d->first_fit[i] = MIN(d->first_fit[i], (uint16_t)page);
	touch(d, 0);
	touch(d, page);
	return AFS_OK;
}

bool vs_dir_is_empty(const struct vs_dir *d)
{
	uint32_t steps = 0;
	for (uint32_t b = 0; b < VS_DIR_BUCKETS; b++) {
		for (uint32_t s = get16(d->data + OFF_HASH + 2 * (size_t)b); s;
			s = get16(slot_at(d, s) + E_NEXT)) {
			if (!slot_ok(d, s) || ++steps > 2)
				/* a third entry is not "." or ".."; damage is not empty */
				return false;
			const char *name = (const char *)slot_at(d, s) + E_NAME;
			if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
				return false;
		}
	}
	return true;
}

/* --- walking and proving -------------------------------------------------------------- */

/* The entry that must start at an allocated slot.  NULL, or what is wrong with it. */
static const char *parse_entry(const struct vs_dir *d, uint32_t slot, struct vs_dir_entry *out)
{
	const uint8_t *e = slot_at(d, slot);
	if (e[0] != 1)
		return "slot in use without an entry";
	size_t room = name_room(slot), len = strnlen((const char *)e + E_NAME, room);
	if (len == room)
		return "name without an end";
	if (len == 0)
		return "empty name";
	if (len >
		VS_DIR_NAME_MAX) /* other servers made names of 256; here 255 holds on every path */
		return "name longer than 255";
	if (memchr(e + E_NAME, '/', len))
		return "name with a slash";
	uint32_t j = slot % VS_DIR_SLOTS;
	unsigned n = vs_dir_slots(len);
	if (j + n > VS_DIR_SLOTS)
		return "entry past the end of its page";
	uint64_t want = bits(j, n);
	if ((get_bitmap(page_at(d, slot / VS_DIR_SLOTS)) & want) != want)
		return "entry whose slots are not all in use";
	*out = entry_at(d, slot, len);
	return NULL;
}

afs_err vs_dir_each(const struct vs_dir *d, vs_dir_fn *fn, void *ctx)
{
	for (uint32_t page = 0; page < d->pages; page++) {
		uint64_t used = get_bitmap(page_at(d, page));
		for (uint32_t j = header_slots(page); j < VS_DIR_SLOTS;) {
			struct vs_dir_entry e;
			if (!(used >> j & 1)) {
				j++;
				continue;
			}
			if (parse_entry(d, page * VS_DIR_SLOTS + j, &e))
				return AFS_ECORRUPT;
			TRY(fn(ctx, &e));
			j += vs_dir_slots(e.name_len);
		}
	}
	return AFS_OK;
}

struct verify {
	const struct vs_dir *d;
	void (*found)(void *ctx, const char *text);
	void *ctx;
	size_t faults;
	uint32_t entries;
};

[[gnu::format(printf, 2, 3)]] static void fault(struct verify *v, const char *fmt, ...)
{
	char text[128];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	v->faults++;
	if (v->found)
		v->found(v->ctx, text);
}

static bool all_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

static void verify_header(struct verify *v, uint32_t page)
{
	const uint8_t *p = page_at(v->d, page);
	uint32_t used = header_slots(page);
	if (get16(p) != (page ? 0 : v->d->pages))
		fault(v, "page %u: page count %u", page, get16(p));
	if (get16(p + OFF_TAG) != TAG)
		fault(v, "page %u: tag %u", page, get16(p + OFF_TAG));
	if (p[OFF_FREECOUNT] != VS_DIR_SLOTS - used)
		fault(v, "page %u: free count %u", page, p[OFF_FREECOUNT]);
	if (!all_zero(p + OFF_PADDING, OFF_MAP - OFF_PADDING))
		fault(v, "page %u: header padding is not zero", page);
	uint64_t map = get_bitmap(p);
	if ((map & bits(0, used)) != bits(0, used))
		fault(v, "page %u: header slots are not in use", page);
	uint32_t free_slots = VS_DIR_SLOTS - (uint32_t)__builtin_popcountll(map);
	if (page < VS_DIR_MAP_PAGES && v->d->data[OFF_MAP + page] != free_slots)
		fault(v, "page %u: %u slots free, map says %u", page, free_slots,
			v->d->data[OFF_MAP + page]);
}

static void verify_slots(struct verify *v, uint32_t page)
{
	uint64_t used = get_bitmap(page_at(v->d, page));
	for (uint32_t j = header_slots(page); j < VS_DIR_SLOTS;) {
		uint32_t slot = page * VS_DIR_SLOTS + j;
		const uint8_t *e = slot_at(v->d, slot);
		if (!(used >> j & 1)) {
			if (!all_zero(e, VS_DIR_SLOT))
				fault(v, "slot %u: free but not zero", slot);
			j++;
			continue;
		}
		struct vs_dir_entry entry;
		const char *why = parse_entry(v->d, slot, &entry);
		if (why) {
			fault(v, "slot %u: %s", slot, why);
			j++;
			continue;
		}
		unsigned n = vs_dir_slots(entry.name_len);
		size_t end = E_NAME + entry.name_len;
		if (e[1] != 0 || !all_zero(e + end, (size_t)n * VS_DIR_SLOT - end))
			fault(v, "slot %u: residue behind the name", slot);
		/* found by its name, at this very place: in the right chain, and the only one of
		 * that name */
		uint8_t *link;
		uint32_t at;
		afs_err err = find_link(v->d, entry.name, entry.name_len, &link, &at);
		if (err != AFS_OK)
			fault(v, "slot %u: %s", slot,
				err == AFS_ENOENT ? "not in the chain of its name"
						  : "broken chain");
		else if (at != slot)
			fault(v, "slot %u: a second entry of the name in slot %u", slot, at);
		v->entries++;
		j += n;
	}
}

static void verify_chains(struct verify *v)
{
	uint32_t linked = 0, most = v->d->pages * VS_DIR_SLOTS;
	for (uint32_t b = 0; b < VS_DIR_BUCKETS; b++) {
		uint32_t s = get16(v->d->data + OFF_HASH + 2 * (size_t)b);
		for (; s; s = get16(slot_at(v->d, s) + E_NEXT)) {
			if (!slot_ok(v->d, s)) {
				fault(v, "bucket %u: leads to slot %u, which is no entry", b, s);
				break;
			}
			if (++linked > most) {
				fault(v, "bucket %u: chain without an end", b);
				return;
			}
		}
	}
	if (linked != v->entries)
		fault(v, "%u entries, %u in chains", v->entries, linked);
}

size_t vs_dir_verify(const struct vs_dir *d, void (*found)(void *ctx, const char *text), void *ctx)
{
	struct verify v = {.d = d, .found = found, .ctx = ctx};
	if (d->pages == 0 || d->pages > VS_DIR_MAX_PAGES) {
		fault(&v, "%u pages", d->pages);
		return v.faults;
	}
	for (uint32_t page = 0; page < d->pages; page++) {
		verify_header(&v, page);
		verify_slots(&v, page);
	}
	for (uint32_t page = d->pages; page < VS_DIR_MAP_PAGES; page++)
		if (d->data[OFF_MAP + page] != PAGE_ABSENT)
			fault(&v, "page %u: not there, map says %u", page, d->data[OFF_MAP + page]);
	verify_chains(&v);
	struct vs_dir_entry e;
	if (vs_dir_find(d, ".", &e) != AFS_OK)
		fault(&v, "no \".\"");
	if (vs_dir_find(d, "..", &e) != AFS_OK)
		fault(&v, "no \"..\"");
	return v.faults;
}

/* --- repair --------------------------------------------------------------------------- */

static void scrub_page(struct vs_dir *d, uint32_t page)
{
	uint8_t *p = page_at(d, page);
	uint32_t head = header_slots(page);
	put16(p, page ? 0 : d->pages);
	put16(p + OFF_TAG, TAG);
	p[OFF_FREECOUNT] = (uint8_t)(VS_DIR_SLOTS - head);
	memset(p + OFF_PADDING, 0, OFF_MAP - OFF_PADDING);
	uint64_t used = get_bitmap(p) | bits(0, head);
	put_bitmap(p, used);
	if (page < VS_DIR_MAP_PAGES)
		d->data[OFF_MAP + page] = (uint8_t)(VS_DIR_SLOTS - __builtin_popcountll(used));
	for (uint32_t j = head; j < VS_DIR_SLOTS;) {
		uint32_t slot = page * VS_DIR_SLOTS + j;
		struct vs_dir_entry e;
		if (!(used >> j & 1) || parse_entry(d, slot, &e)) {
			memset(slot_at(d, slot), 0, VS_DIR_SLOT);
			j++;
			continue;
		}
		unsigned n = vs_dir_slots(e.name_len);
		size_t end = E_NAME + e.name_len;
		slot_at(d, slot)[1] = 0;
		memset(slot_at(d, slot) + end, 0, (size_t)n * VS_DIR_SLOT - end);
		j += n;
	}
}

static bool is_dots(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

static afs_err add_again(void *ctx, const struct vs_dir_entry *e)
{
	return is_dots(e->name) ? AFS_OK : vs_dir_add(ctx, e->name, e->vnode, e->unique);
}

static afs_err rebuild(struct vs_dir *d, uint32_t vnode, uint32_t unique, uint32_t parent_vnode,
	uint32_t parent_unique)
{
	CLEANUP(vs_dir) struct vs_dir fresh = {0};
	TRY(vs_dir_make(&fresh, vnode, unique, parent_vnode, parent_unique));
	afs_err err = vs_dir_each(d, add_again, &fresh);
	if (err)
		return err == AFS_ENOMEM ? err : AFS_ECORRUPT; /* a name twice, or more than fits */
	vs_dir_fini(d);
	*d = TAKE(fresh);
	return AFS_OK;
}

static bool leads_to(struct vs_dir *d, const char *name, uint32_t vnode, uint32_t unique)
{
	struct vs_dir_entry e;
	return vs_dir_find(d, name, &e) == AFS_OK && e.vnode == vnode && e.unique == unique;
}

static afs_err never(void *ctx, const struct vs_dir_entry *e)
{
	(void)ctx, (void)e;
	return AFS_OK;
}

afs_err vs_dir_repair(struct vs_dir *d, uint32_t vnode, uint32_t unique, uint32_t parent_vnode,
	uint32_t parent_unique)
{
	if (d->pages == 0 || d->pages > VS_DIR_MAX_PAGES)
		return AFS_ECORRUPT;
	for (uint32_t page = 0; page < d->pages; page++)
		if (get16(page_at(d, page) + OFF_TAG) != TAG)
			return AFS_ECORRUPT;
	TRY(vs_dir_each(d, never, NULL));
	memset(d->data + OFF_MAP, PAGE_ABSENT, VS_DIR_MAP_PAGES);
	for (uint32_t page = 0; page < d->pages; page++)
		scrub_page(d, page);
	memset(d->dirty, 0xff, sizeof(d->dirty));
	if (vs_dir_verify(d, NULL, NULL) == 0 && leads_to(d, ".", vnode, unique) &&
		leads_to(d, "..", parent_vnode, parent_unique))
		return AFS_OK;
	return rebuild(d, vnode, unique, parent_vnode, parent_unique);
}
