/* SPDX-License-Identifier: BSD-2-Clause
 * Directory objects, byte for byte.  Vectors: directory.md §4-§8; known bugs K01-K05. */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "fileserver/store/dir.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ONE_SLOT = 64435, MOST_255 = 7159 };

static void print_fault(void *ctx, const char *text)
{
	(void)ctx;
	print_error("%s\n", text);
}
#define assert_right(d) assert_int_equal(vs_dir_verify((d), print_fault, NULL), 0)

static void a_name_hashes_and_takes_slots_as_everywhere(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		unsigned bucket, slots;
	} vector[] = {
		{".", 46, 1},
		{"..", 68, 1},
		{"a", 97, 1},
		{"b", 98, 1},
		{"A", 65, 1},
		{"foo", 72, 1},
		{"bar", 49, 1},
		{"hello", 56, 1},
		{"hello.txt", 18, 1},
		{"README", 6, 1},
		{"Makefile", 98, 1},
		{".cshrc", 45, 1},
		{"\xc3\xa9", 112, 1},
		{"\xff", 127, 1},
		{"\xff\xff\xff\xff", 116, 1},
		{"0", 48, 1},
		{"~", 126, 1},
		{"a b", 75, 1},
		{"file0001", 81, 1},
		{"file0002", 82, 1},
		{"mp", 25, 1},
		{"lost+found", 43, 1},
		{"xxxxxxxxxxxxxxx", 88, 1},
		{"xxxxxxxxxxxxxxxx", 0, 2},
		{"xxxxxxxxxxxxxxxxx", 120, 2},
		{"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 0, 3},
		{"\xe6\x97\xa5\xe6\x9c\xac", 44, 1},
		{"\x80", 0, 1},
		{"yyyyyyyyyyyyyyyy", 80, 2},
	};
	for (size_t i = 0; i < ARRAY_SIZE(vector); i++) {
		assert_int_equal(vs_dir_hash(vector[i].name), vector[i].bucket);
		assert_int_equal(vs_dir_slots(strlen(vector[i].name)), vector[i].slots);
	}
	char x[256] = {0};
	memset(x, 'x', 255);
	assert_int_equal(vs_dir_hash(x), 40);
	static const unsigned slots[][2] = {{1, 1}, {15, 1}, {16, 2}, {47, 2}, {48, 3}, {79, 3},
		{80, 4}, {111, 4}, {112, 5}, {143, 5}, {144, 6}, {175, 6}, {176, 7}, {207, 7},
		{208, 8}, {239, 8}, {240, 9}, {255, 9}};
	for (size_t i = 0; i < ARRAY_SIZE(slots); i++)
		assert_int_equal(vs_dir_slots(slots[i][0]), slots[i][1]);
}

static void the_example_of_the_protocol_comes_out_byte_for_byte(void **state)
{
	(void)state;
	CLEANUP(vs_dir) struct vs_dir d = {0};
	assert_ok(vs_dir_make(&d, 5, 11, 1, 1));
	assert_ok(vs_dir_add(&d, "b", 14, 12));
	assert_ok(vs_dir_add(&d, "Makefile", 16, 13));
	assert_ok(vs_dir_add(&d, "xxxxxxxxxxxxxxxx", 18, 14));
	assert_ok(vs_dir_add(&d, "..a", 20, 15));
	uint8_t want[VS_DIR_PAGE] = {0};
	memset(want + 0x20, 0x40, 128);
	static const struct {
		size_t at;
		const char *hex;
	} line[] = {
		{0x000, "0001 04d2 33ff ff0f 0000 0000 0000 0000"},
		{0x020, "2c40 4040 4040 4040 4040 4040 4040 4040"},
		{0x0a0, "0011 0000 0000 0000 0000 0000 0000 0000"},
		{0x0f0, "0000 0000 0000 0000 0000 0000 000d 0000"},
		{0x120, "0000 0000 0000 0000 000e 0000 0000 0000"},
		{0x140, "0000 0000 0000 0000 0000 0013 0000 0000"},
		{0x160, "0000 0000 0010 0000 0000 0000 0000 0000"},
		{0x1a0, "0100 0000 0000 0005 0000 000b 2e00 0000"},
		{0x1c0, "0100 0000 0000 0001 0000 0001 2e2e 0000"},
		{0x1e0, "0100 0000 0000 000e 0000 000c 6200 0000"},
		{0x200, "0100 000f 0000 0010 0000 000d 4d61 6b65"},
		{0x210, "6669 6c65 0000 0000 0000 0000 0000 0000"},
		{0x220, "0100 0000 0000 0012 0000 000e 7878 7878"},
		{0x230, "7878 7878 7878 7878 7878 7878 0000 0000"},
		{0x260, "0100 0000 0000 0014 0000 000f 2e2e 6100"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(line); i++)
		test_unhex(line[i].hex, want + line[i].at, 16);
	assert_memory_equal(d.data, want, VS_DIR_PAGE);

	assert_ok(vs_dir_remove(&d, "b"));
	assert_hex(d.data + 5, 3, "ff7f0f");
	assert_int_equal(d.data[0x20], 45);
	for (int i = 0; i < 32; i++)
		assert_int_equal(d.data[0x1e0 + i], 0);
	assert_hex(d.data + 0x202, 2, "0000");
	assert_ok(vs_dir_add(&d, "yyyyyyyyyyyyyyyy", 22, 16)); /* skips the hole of one slot */
	assert_ok(vs_dir_add(&d, "c", 24, 17));
	assert_hex(d.data + 5, 3, "ffff3f");
	assert_int_equal(d.data[0x20], 42);
	assert_hex(d.data + 0x140, 2, "0014");
	assert_hex(d.data + 0x166, 2, "000f");
	assert_right(&d);
}

static void a_second_page_is_added_when_the_first_is_full(void **state)
{
	(void)state;
	CLEANUP(vs_dir) struct vs_dir d = {0};
	assert_ok(vs_dir_make(&d, 1, 1, 1, 1));
	for (uint32_t i = 0; i < 60; i++) {
		char name[16];
		snprintf(name, sizeof(name), "file%04u", i);
		assert_ok(vs_dir_add(&d, name, 0x7a - 2 * 49 + 2 * i, 0x44 - 49 + i));
	}
	assert_int_equal(d.pages, 2);
	assert_hex(d.data, 16, "0002 04d2 33ff ffff ffff ffff ff00 0000");
	assert_hex(d.data + 0x20, 4, "0034 4040");
	assert_hex(d.data + 0x800, 16, "0000 04d2 3fff 0f00 0000 0000 0000 0000");
	assert_hex(d.data + 0x820, 21, "0100 0000 0000 007a 0000 0044 6669 6c65 3030 3439 00");
	assert_right(&d);
}

/* K01 */
static void names_about_the_boundaries_come_and_go_without_touching_each_other(void **state)
{
	(void)state;
	static const size_t length[] = {1, 15, 16, 19, 20, 47, 48, 51, 52, 79, 80, 254, 255};
	CLEANUP(vs_dir) struct vs_dir d = {0};
	assert_ok(vs_dir_make(&d, 1, 1, 1, 1));
	char name[ARRAY_SIZE(length)][256] = {{0}};
	for (size_t i = 0; i < ARRAY_SIZE(length); i++) {
		memset(name[i], 'a' + (int)i, length[i]);
		assert_ok(vs_dir_add(&d, name[i], (uint32_t)(2 * i + 2), (uint32_t)(i + 2)));
	}
	for (size_t i = 0; i < ARRAY_SIZE(length); i += 2)
		assert_ok(vs_dir_remove(&d, name[i]));
	assert_right(&d);
	for (size_t i = 0; i < ARRAY_SIZE(length); i += 2) {
		name[i][length[i] / 2] = '\0'; /* other lengths in the holes */
		if (name[i][0])
			assert_ok(vs_dir_add(&d, name[i], 1000, 1000));
	}
	assert_right(&d);
	for (size_t i = 1; i < ARRAY_SIZE(length); i += 2) {
		struct vs_dir_entry e;
		assert_ok(vs_dir_find(&d, name[i], &e));
		assert_int_equal(e.vnode, 2 * i + 2);
	}
}

/* K02 */
static void a_directory_is_full_at_exactly_its_capacity_and_stays_right(void **state)
{
	(void)state;
	CLEANUP(vs_dir) struct vs_dir d = {0};
	assert_ok(vs_dir_make(&d, 1, 1, 1, 1));
	char name[300];
	for (uint32_t i = 0; i < MOST_ONE_SLOT; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_ok(vs_dir_add(&d, name, 2 * i + 2, i + 2));
	}
	assert_int_equal(d.pages, VS_DIR_MAX_PAGES);
	assert_err(vs_dir_add(&d, "more", 9, 9), AFS_EFBIG);
	assert_ok(vs_dir_remove(&d, "777"));
	assert_ok(vs_dir_add(&d, "more", 9, 9));
	assert_err(vs_dir_add(&d, "again", 9, 9), AFS_EFBIG);
	assert_ok(vs_dir_remove(&d, "64000"));
	assert_ok(vs_dir_add(&d, "again", 9, 9));
	assert_err(vs_dir_add(&d, "and again", 9, 9), AFS_EFBIG);
	assert_ok(vs_dir_accept(&d));
	assert_right(&d);
}

static void names_of_255_bytes_fit_as_often_as_pages_hold_them(void **state)
{
	(void)state;
	CLEANUP(vs_dir) struct vs_dir d = {0};
	assert_ok(vs_dir_make(&d, 1, 1, 1, 1));
	char name[300];
	uint32_t n = 0;
	afs_err err = AFS_OK;
	while (!err) {
		snprintf(name, sizeof(name), "%0255u", n);
		err = vs_dir_add(&d, name, 2 * n + 2, n + 2);
		n += err == AFS_OK;
	}
	assert_err(err, AFS_EFBIG);
	assert_int_equal(n, MOST_255); /* 5 in page 0, 7 in each of the 1022 others */
	assert_ok(vs_dir_remove(&d, "."));
	assert_ok(vs_dir_add(&d, ".", 1, 1)); /* short ones still find the rest of a page */
	assert_right(&d);
}

/* K03 */
static void names_of_255_bytes_are_the_longest(void **state)
{
	(void)state;
	CLEANUP(vs_dir) struct vs_dir d = {0};
	assert_ok(vs_dir_make(&d, 1, 1, 1, 1));
	char name[300] = {0};
	memset(name, 'n', 256);
	assert_err(vs_dir_add(&d, name, 2, 2), AFS_ENAMETOOLONG);
	name[255] = '\0';
	assert_ok(vs_dir_add(&d, name, 2, 2));
	assert_right(&d);
	assert_ok(vs_dir_remove(&d, name));
}

/* K04 */
static void nothing_of_a_removed_name_stays(void **state)
{
	(void)state;
	CLEANUP(vs_dir) struct vs_dir d = {0};
	CLEANUP(vs_dir) struct vs_dir empty = {0};
	assert_ok(vs_dir_make(&empty, 1, 1, 1, 1));
	for (size_t len = 1; len <= 255; len++) {
		char name[256] = {0};
		memset(name, 'S', len);
		vs_dir_fini(&d);
		assert_ok(vs_dir_make(&d, 1, 1, 1, 1));
		assert_ok(vs_dir_add(&d, name, 2, 2));
		assert_ok(vs_dir_remove(&d, name));
		assert_memory_equal(d.data, empty.data, VS_DIR_PAGE);
	}
}

/* K05 */
static void names_are_bytes(void **state)
{
	(void)state;
	CLEANUP(vs_dir) struct vs_dir d = {0};
	assert_ok(vs_dir_make(&d, 1, 1, 1, 1));
	for (uint32_t c = 1; c < 256; c++) {
		char name[3] = {(char)c, (char)c, 0};
		afs_err want = c == '/' ? AFS_EINVAL : c == '.' ? AFS_EEXIST : AFS_OK;
		assert_err(vs_dir_add(&d, name, 2 * c, c), want);
	}
	for (uint32_t c = 1; c < 256; c++) {
		char name[3] = {(char)c, (char)c, 0};
		struct vs_dir_entry e;
		if (c == '/' || c == '.')
			continue;
		assert_ok(vs_dir_find(&d, name, &e));
		assert_int_equal(e.vnode, 2 * c);
	}
	/* composed and decomposed are two names */
	assert_ok(vs_dir_add(&d, "caf\xc3\xa9", 1000, 1));
	assert_ok(vs_dir_add(&d, "cafe\xcc\x81", 1002, 2));
	assert_right(&d);
}

/* --- an independent model of directory.md §6: slots as a plain array ------------------ */

struct mini {
	uint8_t byte[40 * 2048];
	unsigned pages;
};

static bool mini_used(const struct mini *m, unsigned slot)
{
	return m->byte[slot / 64 * 2048 + 5 + slot % 64 / 8] & 1 << slot % 8;
}
static void mini_set(struct mini *m, unsigned slot, bool on)
{
	uint8_t *b = &m->byte[slot / 64 * 2048 + 5 + slot % 64 / 8];
	*b = (uint8_t)(on ? *b | 1 << slot % 8 : *b & ~(1 << slot % 8));
}
static unsigned mini_get16(const struct mini *m, size_t at)
{
	return m->byte[at] * 256u + m->byte[at + 1];
}
static void mini_put(struct mini *m, size_t at, unsigned long v, int n)
{
	while (n--) {
		m->byte[at + (size_t)n] = (uint8_t)(v % 256);
		v /= 256;
	}
}
/* As C programs did it: a signed sum, whose negative values are negated modulo 128. */
static unsigned mini_hash(const char *name)
{
	int32_t h = 0;
	for (const char *c = name; *c; c++)
		h = (int32_t)((uint32_t)h * 173u + (unsigned char)*c);
	return h >= 0 ? (unsigned)h % 128 : (0u - (uint32_t)h) % 128;
}
static void mini_page(struct mini *m)
{
	unsigned p = m->pages++;
	mini_put(m, p * 2048 + 2, 1234, 2);
	m->byte[p * 2048 + 4] = p ? 63 : 51;
	for (unsigned j = 0; j < (p ? 1u : 13u); j++)
		mini_set(m, p * 64 + j, true);
	if (p == 0)
		memset(m->byte + 32, 64, 128);
	m->byte[32 + p] = p ? 63 : 51;
	mini_put(m, 0, m->pages, 2);
}
static void mini_add(struct mini *m, const char *name, uint32_t vnode, uint32_t unique)
{
	unsigned n = 1 + (unsigned)(strlen(name) + 1 + 15) / 32, slot = 0;
	for (unsigned p = 0; !slot; p++) {
		if (p == m->pages)
			mini_page(m);
		for (unsigned j = p ? 1 : 13; !slot && j + n <= 64; j++) {
			bool room = true;
			for (unsigned k = 0; k < n; k++)
				room &= !mini_used(m, p * 64 + j + k);
			if (room)
				slot = p * 64 + j;
		}
	}
	for (unsigned k = 0; k < n; k++)
		mini_set(m, slot + k, true);
	m->byte[32 + slot / 64] = (uint8_t)(m->byte[32 + slot / 64] - n);
	size_t head = 160 + 2 * (size_t)mini_hash(name);
	m->byte[slot * 32] = 1;
	mini_put(m, slot * 32 + 2, mini_get16(m, head), 2);
	mini_put(m, slot * 32 + 4, vnode, 4);
	mini_put(m, slot * 32 + 8, unique, 4);
	memcpy(m->byte + slot * 32 + 12, name, strlen(name) + 1);
	mini_put(m, head, slot, 2);
}
static void mini_remove(struct mini *m, const char *name)
{
	size_t at = 160 + 2 * (size_t)mini_hash(name);
	while (strcmp((char *)m->byte + mini_get16(m, at) * 32 + 12, name) != 0)
		at = mini_get16(m, at) * 32 + 2;
	unsigned slot = mini_get16(m, at), n = 1 + (unsigned)(strlen(name) + 1 + 15) / 32;
	mini_put(m, at, mini_get16(m, slot * 32 + 2), 2);
	memset(m->byte + slot * 32, 0, n * 32);
	for (unsigned k = 0; k < n; k++)
		mini_set(m, slot + k, false);
	m->byte[32 + slot / 64] = (uint8_t)(m->byte[32 + slot / 64] + n);
}

static uint32_t lcg(uint64_t *s)
{
	*s = *s * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(*s >> 33);
}

static void random_operations_end_as_a_model_of_slots_says(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		uint64_t rng = seed;
		struct mini *m = mem_new(struct mini);
		CLEANUP(vs_dir) struct vs_dir d = {0};
		bool there[400] = {false};
		assert_non_null(m);
		assert_ok(vs_dir_make(&d, 7, 3, 1, 1));
		mini_page(m);
		mini_add(m, ".", 7, 3);
		mini_add(m, "..", 1, 1);
		for (int op = 0; op < 1500; op++) {
			uint32_t k = lcg(&rng) % 400;
			char name[300];
			snprintf(name, sizeof(name), "%u-%0*u", k, (int)(k * 7 % 240) + 1, k);
			if (there[k]) {
				assert_err(vs_dir_add(&d, name, 1, 1), AFS_EEXIST);
				assert_ok(vs_dir_remove(&d, name));
				mini_remove(m, name);
			} else {
				assert_err(vs_dir_remove(&d, name), AFS_ENOENT);
				assert_ok(vs_dir_add(&d, name, 2 * k + 2, (uint32_t)op + 2));
				mini_add(m, name, 2 * k + 2, (uint32_t)op + 2);
			}
			there[k] = !there[k];
			assert_int_equal(d.pages, m->pages);
			if (op % 50 == 0)
				assert_memory_equal(d.data, m->byte, (size_t)d.pages * VS_DIR_PAGE);
		}
		assert_memory_equal(d.data, m->byte, (size_t)d.pages * VS_DIR_PAGE);
		assert_right(&d);
		mem_free(m);
	}
}

static void the_mirrored_hash_is_the_signed_modulo_of_old(void **state)
{
	(void)state;
	uint64_t rng = 5;
	for (int i = 0; i < 20000; i++) {
		char name[24] = {0};
		for (uint32_t k = 0, n = 1 + lcg(&rng) % 20; k < n; k++)
			name[k] = (char)(1 + lcg(&rng) % 255);
		assert_int_equal(vs_dir_hash(name), mini_hash(name));
	}
}

static afs_err count(void *ctx, const struct vs_dir_entry *e)
{
	(void)e;
	++*(int *)ctx;
	return AFS_OK;
}

static void damage_is_met_with_an_error_and_named_by_verify(void **state)
{
	(void)state;
	static const struct {
		size_t at;
		uint8_t byte;
		bool accept; /* the quick look does not see it */
	} harm[] = {
		{1, 9, false},                 /* page count */
		{2, 0, false},                 /* tag */
		{4, 50, true},                 /* free count */
		{5, 0xfe, false},              /* header slot free */
		{14, 1, true},                 /* padding */
		{0x20, 3, true},               /* map */
		{0x21, 3, true},               /* map of a page that is not there */
		{0xa0 + 2 * 97 + 1, 63, true}, /* chain into a free slot */
		{0xa0 + 2 * 97, 0xff, true},   /* chain out of the object */
		{0x1e0, 0, true},              /* flag */
		{0x1e1, 5, true},              /* length byte */
		{0x1e3, 15, true},             /* a loop */
		{0x1ec, '/', true},            /* name */
		{0x1ec, 0, true},              /* empty name */
		{0x1f0, 7, true},              /* residue */
		{0x7f0, 7, true},              /* residue in a free slot */
	};
	for (size_t i = 0; i < ARRAY_SIZE(harm); i++) {
		CLEANUP(vs_dir) struct vs_dir d = {0};
		struct vs_dir_entry e;
		assert_ok(vs_dir_make(&d, 1, 1, 1, 1));
		assert_ok(vs_dir_add(&d, "a", 2, 2));
		assert_ok(vs_dir_add(&d, "b", 4, 3));
		d.data[harm[i].at] = harm[i].byte;
		assert_true(vs_dir_verify(&d, NULL, NULL) > 0);
		assert_err(vs_dir_accept(&d), harm[i].accept ? AFS_OK : AFS_ECORRUPT);
		(void)vs_dir_find(&d, "a", &e);
		(void)vs_dir_find(&d, "nowhere", &e);
		int n = 0;
		(void)vs_dir_each(&d, count, &n);
	}
}

static void repair_keeps_slots_and_wipes_residue(void **state)
{
	(void)state;
	CLEANUP(vs_dir) struct vs_dir d = {0};
	CLEANUP(vs_dir) struct vs_dir want = {0};
	for (int k = 0; k < 2; k++) {
		struct vs_dir *o = k ? &want : &d;
		assert_ok(vs_dir_make(o, 1, 1, 1, 1));
		for (uint32_t i = 0; i < 100; i++) {
			char name[32];
			snprintf(name, sizeof(name), "entry-%u-of-a-hundred", i);
			assert_ok(vs_dir_add(o, name, 2 * i + 2, i + 2));
		}
		assert_ok(vs_dir_remove(o, "entry-40-of-a-hundred"));
	}
	memset(d.data + 2047 - 20, 'R', 10); /* behind the last name of page 0, or in a free slot */
	memset(d.data + d.pages * 2048 - 32, 'R', 32); /* a freed slot of another server */
	d.data[0] = d.data[1] = 0;                     /* a very old page count */
	d.data[0x21] = 1;
	assert_ok(vs_dir_repair(&d, 1, 1, 1, 1));
	assert_memory_equal(d.data, want.data, (size_t)want.pages * VS_DIR_PAGE);
}

static void repair_builds_broken_chains_anew(void **state)
{
	(void)state;
	CLEANUP(vs_dir) struct vs_dir d = {0};
	struct vs_dir_entry e;
	assert_ok(vs_dir_make(&d, 3, 2, 1, 1));
	for (uint32_t i = 0; i < 100; i++) {
		char name[32];
		snprintf(name, sizeof(name), "f%u", i);
		assert_ok(vs_dir_add(&d, name, 2 * i + 2, i + 3));
	}
	memset(d.data + 0xa0, 0, 256);
	assert_ok(vs_dir_repair(&d, 3, 2, 9, 8));
	assert_right(&d);
	for (uint32_t i = 0; i < 100; i++) {
		char name[32];
		snprintf(name, sizeof(name), "f%u", i);
		assert_ok(vs_dir_find(&d, name, &e));
		assert_int_equal(e.unique, i + 3);
	}
	assert_ok(vs_dir_find(&d, "..", &e));
	assert_int_equal(e.vnode, 9);
	memcpy(d.data + 0x1e0 + 12, "f1", 3); /* a name twice: which one is meant nobody can say */
	assert_err(vs_dir_repair(&d, 3, 2, 9, 8), AFS_ECORRUPT);
}

static void without_memory_a_directory_stays_as_it_was(void **state)
{
	(void)state;
	CLEANUP(vs_dir) struct vs_dir d = {0};
	assert_ok(vs_dir_make(&d, 1, 1, 1, 1));
	char name[256] = {0};
	memset(name, 'n', 250);
	afs_err err = AFS_OK;
	uint32_t n = 0;
	mem_fail_after(0);
	while (!err) {
		snprintf(name, sizeof(name), "%0250u", n);
		err = vs_dir_add(&d, name, 2, 2);
		n += err == AFS_OK;
	}
	mem_fail_after(-1);
	assert_err(err, AFS_ENOMEM);
	assert_true(n > 0);
	assert_right(&d);
	assert_ok(vs_dir_add(&d, name, 2, 2));
	assert_right(&d);
}

TEST_MAIN(T(a_name_hashes_and_takes_slots_as_everywhere),
	T(the_example_of_the_protocol_comes_out_byte_for_byte),
	T(a_second_page_is_added_when_the_first_is_full),
	T(names_about_the_boundaries_come_and_go_without_touching_each_other),
	T(a_directory_is_full_at_exactly_its_capacity_and_stays_right),
	T(names_of_255_bytes_fit_as_often_as_pages_hold_them),
	T(names_of_255_bytes_are_the_longest), T(nothing_of_a_removed_name_stays),
	T(names_are_bytes), T(random_operations_end_as_a_model_of_slots_says),
	T(the_mirrored_hash_is_the_signed_modulo_of_old),
	T(damage_is_met_with_an_error_and_named_by_verify), T(repair_keeps_slots_and_wipes_residue),
	T(repair_builds_broken_chains_anew), T(without_memory_a_directory_stays_as_it_was))
