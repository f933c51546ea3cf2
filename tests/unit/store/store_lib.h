/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the store's tests share: a store in a scratch folder with one volume, and short forms of
 * verbs. */
#pragma once
#include "tests/lib/test.h"

#include "cell/base/log.h"
#include "fileserver/store/store.h"

#include <stdio.h>
#include <string.h>

struct fix {
	char *dir;
	struct vs_config config;
	struct vs_store *s;
	struct vs_partition *p;
	struct vs_volume *v;
};

enum { VOL = 536870915 };
static const struct vs_fid root = {1, 1};
static struct vs_who who = {.now = SEC(1000000000), .id = 100};

static inline void print_finding(void *ctx, const struct vs_finding *f)
{
	(void)ctx;
	print_error("finding %d: %s\n", (int)f->kind, f->text);
}

static inline void fix_attach(struct fix *x)
{
	assert_ok(vs_store_open(&x->config, &x->s));
	assert_ok(vs_partition_attach(x->s, "a", x->dir, &x->p));
}

static inline void fix_open(struct fix *x)
{
	fix_attach(x);
	assert_ok(vs_volume_enter(x->s, VOL, &x->v));
}

static inline void fix_close(struct fix *x)
{
	if (x->v)
		vs_volume_unref(x->v);
	x->v = NULL;
	vs_store_close(x->s);
	x->s = NULL;
}

static inline struct vs_volume *make_volume(struct fix *x, afs_volid id, const char *name)
{
	struct vs_volume *v;
	struct vs_header h = {.id = id, .type = AFS_VOL_RW};
	snprintf(h.name, sizeof(h.name), "%s", name);
	assert_ok(vs_volume_create(x->p, &h, true, who.now, &v));
	h.in_service = true;
	h.quota_kib = 0;
	assert_ok(vs_volume_set_header(v, &h, VS_H_DESTROY_ME | VS_H_IN_SERVICE | VS_H_QUOTA));
	return v;
}

static inline void fix_init(struct fix *x)
{
	log_to(2, LOG_ERROR);
	x->dir = test_scratch();
	fix_attach(x);
	x->v = make_volume(x, VOL, "test");
}

static inline size_t findings(struct vs_volume *v, bool print)
{
	size_t n = 0;
	assert_ok(vs_check(v, print ? print_finding : NULL, NULL, &n));
	return n;
}
#define assert_clean(v) assert_int_equal(findings((v), true), 0)

static inline void fix_fini(struct fix *x)
{
	if (x->s)
		fix_close(x);
	test_scratch_free(x->dir);
	x->dir = NULL;
}
/* FIX(x); gives a store with one empty volume, gone at the end of the scope. */
static inline void fix_cleanup(struct fix *x) { fix_fini(x); }
#define FIX(x)                                                                                     \
	CLEANUP(fix) struct fix x = {0};                                                           \
	fix_init(&x)

static inline struct vs_status status_of(struct vs_volume *v, struct vs_fid f)
{
	struct vs_node n;
	assert_ok(vs_node_get(v, f, &n));
	return n.st;
}

static inline struct vs_fid make_file(struct vs_volume *v, struct vs_fid dir, const char *name)
{
	struct vs_made m;
	assert_ok(vs_create_file(v, dir, name, &who, NULL, &m));
	return m.node.fid;
}

static inline struct vs_fid make_folder(struct vs_volume *v, struct vs_fid dir, const char *name)
{
	struct vs_made m;
	assert_ok(vs_make_dir(v, dir, name, &who, NULL, &m));
	return m.node.fid;
}

static inline afs_err try_store(struct vs_volume *v, struct vs_fid f, uint64_t pos, const void *p,
	size_t n, uint64_t file_length, struct vs_status *st)
{
	struct vs_writer *w;
	const struct vs_write req = {.pos = pos, .length = n, .file_length = file_length};
	TRY(vs_write_begin(v, f, &req, &who, &w));
	afs_err err = vs_write_put(w, p, n);
	afs_err end = vs_write_end(w, &who, st);
	assert_true(err == end || !err);
	return end;
}

static inline struct vs_status store(struct vs_volume *v, struct vs_fid f, uint64_t pos,
	const void *p, size_t n, uint64_t file_length)
{
	struct vs_status st;
	assert_ok(try_store(v, f, pos, p, n, file_length, &st));
	return st;
}

/* All bytes of a file, NUL behind them; the caller's. */
static inline uint8_t *content(struct vs_volume *v, struct vs_fid f, size_t *n)
{
	struct vs_status st;
	struct vs_file *file;
	assert_ok(vs_file_open(v, f, &st, &file));
	uint8_t *p = mem_alloc((size_t)st.length + 1, 1);
	assert_non_null(p);
	for (size_t pos = 0; pos < st.length;) {
		size_t got;
		assert_ok(vs_file_read(
			file, pos, p + pos, (size_t)MIN(st.length - pos, (uint64_t)100000), &got));
		assert_true(got > 0);
		pos += got;
	}
	vs_file_close(file);
	*n = (size_t)st.length;
	return p;
}

static inline void assert_content(struct vs_volume *v, struct vs_fid f, const void *p, size_t n)
{
	size_t have;
	CLEANUP(heap) uint8_t *q = content(v, f, &have);
	assert_int_equal(have, n);
	assert_true(memcmp(p, q, n) == 0);
}

/* A generator of its own, so that seeds mean the same for ever. */
static inline uint32_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33);
}
static inline uint32_t below(uint64_t *state, uint32_t n) { return next_random(state) % n; }
