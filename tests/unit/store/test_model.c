/* SPDX-License-Identifier: BSD-2-Clause
 * Random verbs against a model that knows names, links, bytes and versions, and nothing of pages
 * or rows. Fixed seeds; the store is closed, opened and checked on the way. */
#include "store_lib.h"

enum { OBJECTS = 300, NAMES = 24, BIG = 12 * 1048576 };

struct object {
	bool live;
	struct vs_fid fid;
	enum afs_filetype type;
	uint32_t links, mode;
	uint64_t dv;
	int parent; /* index */
	uint8_t *bytes;
	size_t n, cap;
};
struct entry {
	bool used;
	int dir, to;
	char name[64];
};
struct model {
	struct object obj[OBJECTS];
	struct entry ent[OBJECTS * 3];
	uint64_t rng;
	uint64_t unique;
};

static int new_object(struct model *m, struct vs_fid fid, enum afs_filetype type, int parent)
{
	for (int i = 0; i < OBJECTS; i++) {
		if (m->obj[i].live)
			continue;
		m->obj[i] = (struct object){.live = true,
			.fid = fid,
			.type = type,
			.links = type == AFS_DIR ? 2 : 1,
			.mode = 0777,
			.parent = parent};
		return i;
	}
	return -1;
}

static bool full(const struct model *m)
{
	int n = 0;
	for (int i = 0; i < OBJECTS; i++)
		n += m->obj[i].live;
	return n > OBJECTS - 2;
}

static struct entry *find(struct model *m, int dir, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(m->ent); i++)
		if (m->ent[i].used && m->ent[i].dir == dir && strcmp(m->ent[i].name, name) == 0)
			return &m->ent[i];
	return NULL;
}

static void add(struct model *m, int dir, const char *name, int to)
{
	for (size_t i = 0; i < ARRAY_SIZE(m->ent); i++) {
		if (m->ent[i].used)
			continue;
		m->ent[i] = (struct entry){.used = true, .dir = dir, .to = to};
		snprintf(m->ent[i].name, sizeof(m->ent[i].name), "%s", name);
		return;
	}
	fail_msg("model full");
}

static bool dir_empty(const struct model *m, int dir)
{
	for (size_t i = 0; i < ARRAY_SIZE(m->ent); i++)
		if (m->ent[i].used && m->ent[i].dir == dir)
			return false;
	return true;
}

static void kill_object(struct model *m, int i)
{
	mem_free(m->obj[i].bytes);
	m->obj[i] = (struct object){0};
}

static int some(struct model *m, enum afs_filetype type)
{
	int at = (int)below(&m->rng, OBJECTS);
	for (int i = 0; i < OBJECTS; i++, at = (at + 1) % OBJECTS)
		if (m->obj[at].live && (type == 0 || m->obj[at].type == type))
			return at;
	return -1;
}

static const char *some_name(struct model *m, char out[64])
{
	uint32_t k = below(&m->rng, NAMES);
	/* names of one to two slots */
	snprintf(out, 64, k % 3 ? "n%u" : "a-much-longer-name-than-that-%u-of-two-slots", k);
	return out;
}

static void unlink_one(struct model *m, int i)
{
	if (--m->obj[i].links == 0)
		kill_object(m, i);
}

static void do_make(struct model *m, struct vs_volume *v, enum afs_filetype type)
{
	char name[64];
	int dir = some(m, AFS_DIR);
	some_name(m, name);
	struct vs_made made;
	const struct vs_fid d = m->obj[dir].fid;
	afs_err want = find(m, dir, name) ? AFS_EEXIST : AFS_OK;
	if (!want && full(m))
		return;
	afs_err err = type == AFS_FILE ? vs_create_file(v, d, name, &who, NULL, &made)
		      : type == AFS_DIR
			      ? vs_make_dir(v, d, name, &who, NULL, &made)
			      : vs_make_symlink(v, d, name, name, strlen(name), &who, NULL, &made);
	assert_err(err, want);
	if (err)
		return;
	assert_true(made.node.fid.unique >= m->unique); /* never again */
	m->unique = made.node.fid.unique + 1;
	int i = new_object(m, made.node.fid, type, dir);
	if (type == AFS_SYMLINK) {
		m->obj[i].bytes = (uint8_t *)mem_strdup(name);
		m->obj[i].n = m->obj[i].cap = strlen(name);
	}
	add(m, dir, name, i);
	m->obj[dir].dv++;
	m->obj[dir].links += type == AFS_DIR;
	assert_int_equal(made.dir.dv, m->obj[dir].dv);
	assert_int_equal(made.node.dv, 0);
}

static void do_link(struct model *m, struct vs_volume *v)
{
	char name[64];
	int dir = some(m, AFS_DIR), file = some(m, 0);
	some_name(m, name);
	struct vs_made made;
	afs_err want = m->obj[file].type != AFS_FILE ? AFS_EISDIR
		       : m->obj[file].parent != dir  ? AFS_EXDEV
		       : find(m, dir, name)          ? AFS_EEXIST
						     : AFS_OK;
	assert_err(vs_link(v, m->obj[dir].fid, name, m->obj[file].fid, &who, &made), want);
	if (want)
		return;
	add(m, dir, name, file);
	m->obj[file].links++;
	m->obj[dir].dv++;
	assert_int_equal(made.node.links, m->obj[file].links);
}

static void do_remove(struct model *m, struct vs_volume *v, bool as_dir)
{
	char name[64];
	int dir = some(m, AFS_DIR);
	some_name(m, name);
	struct entry *e = find(m, dir, name);
	struct vs_removed removed;
	bool is_dir = e && m->obj[e->to].type == AFS_DIR;
	afs_err want = !e                               ? AFS_ENOENT
		       : is_dir && !as_dir              ? AFS_EISDIR
		       : !is_dir && as_dir              ? AFS_ENOTDIR
		       : is_dir && !dir_empty(m, e->to) ? AFS_ENOTEMPTY
							: AFS_OK;
	afs_err err = as_dir ? vs_remove_dir(v, m->obj[dir].fid, name, &who, &removed)
			     : vs_remove(v, m->obj[dir].fid, name, &who, &removed);
	assert_err(err, want);
	if (want)
		return;
	int to = e->to;
	e->used = false;
	m->obj[dir].dv++;
	assert_int_equal(removed.dir.dv, m->obj[dir].dv);
	if (is_dir) {
		m->obj[dir].links--;
		kill_object(m, to);
		assert_true(removed.freed);
	} else {
		assert_int_equal(removed.freed, m->obj[to].links == 1);
		unlink_one(m, to);
	}
}

static bool below_dir(const struct model *m, int dir, int top)
{
	for (; dir != top; dir = m->obj[dir].parent)
		if (m->obj[dir].fid.vnode == 1)
			return false;
	return true;
}

static afs_err judge_rename(struct model *m, int from, struct entry *src, int to, struct entry *dst)
{
	if (!src)
		return AFS_ENOENT;
	if (src->to == from || src->to == to)
		return AFS_ELOOP;
	bool dir = m->obj[src->to].type == AFS_DIR;
	if (!dir && from != to && m->obj[src->to].links > 1)
		return AFS_EXDEV;
	if (dst) {
		if (dst->to == src->to || dst->to == from || dst->to == to)
			return AFS_EINVAL;
		bool target_dir = m->obj[dst->to].type == AFS_DIR;
		if (target_dir != dir)
			return target_dir ? AFS_EISDIR : AFS_ENOTDIR;
		if (target_dir && !dir_empty(m, dst->to))
			return AFS_ENOTEMPTY;
	}
	return dir && from != to && below_dir(m, to, src->to) ? AFS_ELOOP : AFS_OK;
}

static void do_rename(struct model *m, struct vs_volume *v)
{
	char a[64], b[64];
	int from = some(m, AFS_DIR), to = below(&m->rng, 2) ? from : some(m, AFS_DIR);
	some_name(m, a);
	some_name(m, b);
	struct entry *src = find(m, from, a), *dst = find(m, to, b);
	afs_err want = judge_rename(m, from, src, to, dst);
	struct vs_renamed r;
	assert_err(vs_rename(v, m->obj[from].fid, a, m->obj[to].fid, b, true, &who, &r), want);
	if (want)
		return;
	int moved = src->to;
	bool dir = m->obj[moved].type == AFS_DIR;
	src->used = false;
	if (dst) {
		int target = dst->to;
		dst->used = false;
		if (dir) {
			m->obj[to].links--;
			kill_object(m, target);
		} else {
			unlink_one(m, target);
		}
	}
	add(m, to, b, moved);
	m->obj[from].dv++;
	if (from != to) {
		m->obj[to].dv++;
		m->obj[moved].parent = to;
		if (dir) {
			m->obj[from].links--;
			m->obj[to].links++;
			m->obj[moved].dv++;
		}
	}
	assert_int_equal(r.old_dir.dv, m->obj[from].dv);
	assert_int_equal(r.new_dir.dv, m->obj[to].dv);
	assert_int_equal(r.replaced, dst != NULL);
	assert_int_equal(r.dotdot_changed, dir && from != to);
}

static void grow(struct object *o, size_t n)
{
	if (n > o->cap) {
		uint8_t *p = mem_resize(o->bytes, o->cap, n + 65536, 1);
		assert_non_null(p);
		o->bytes = p;
		o->cap = n + 65536;
	}
	if (n > o->n)
		memset(o->bytes + o->n, 0, n - o->n);
	o->n = n;
}

static size_t some_size(struct model *m)
{
	switch (below(&m->rng, 8)) {
	case 0:
		return 0;
	case 1:
	case 2:
	case 3:
		return below(&m->rng, 5000);
	case 4:
		return 4090 + below(&m->rng, 12);
	case 5:
	case 6:
		return below(&m->rng, 200000);
	default:
		return below(&m->rng, BIG / 2);
	}
}

/* The bytes as the protocol tells them, applied to the model. */
static void model_store(struct object *o, uint64_t pos, const uint8_t *p, size_t announced,
	size_t came, uint64_t file_length)
{
	if (file_length < o->n)
		o->n = (size_t)file_length;
	if (announced == 0 && pos > o->n)
		grow(o, (size_t)pos);
	if (came) {
		if (pos + came > o->n)
			grow(o, (size_t)pos + came);
		memcpy(o->bytes + pos, p, came);
	}
	o->dv++;
}

static void do_store(struct model *m, struct vs_volume *v)
{
	static uint8_t junk[BIG];
	int i = some(m, AFS_FILE);
	if (i < 0)
		return;
	struct object *o = &m->obj[i];
	size_t n = some_size(m);
	uint64_t pos = below(&m->rng, 2) ? o->n : o->n ? below(&m->rng, (uint32_t)o->n + 1) : 0;
	if (below(&m->rng, 6) == 0)
		pos = some_size(m);
	if (pos + n > BIG)
		n = 0;
	uint64_t file_length = below(&m->rng, 3) ? MAX((uint64_t)o->n, pos + n) : some_size(m);
	size_t came = below(&m->rng, 5) ? n : (n ? below(&m->rng, (uint32_t)n) : 0);
	for (size_t k = 0; k < n; k += 64)
		junk[k] = (uint8_t)next_random(&m->rng);
	struct vs_writer *w;
	const struct vs_write req = {.pos = pos, .length = n, .file_length = file_length};
	assert_ok(vs_write_begin(v, o->fid, &req, &who, &w));
	for (size_t done = 0; done < came;) {
		size_t run_n = 1 + below(&m->rng, 100000);
		run_n = MIN(run_n, came - done);
		assert_ok(vs_write_put(w, junk + done, run_n));
		done += run_n;
	}
	if (below(&m->rng, 10) == 0) {
		vs_write_cancel(w);
		return;
	}
	struct vs_status st;
	assert_ok(vs_write_end(w, &who, &st));
	model_store(o, pos, junk, n, came, file_length);
	assert_int_equal(st.length, o->n);
	assert_int_equal(st.dv, o->dv);
}

static void do_chmod(struct model *m, struct vs_volume *v)
{
	struct object *o = &m->obj[some(m, 0)];
	struct vs_status st;
	const struct vs_set set = {.mask = VS_SET_MODE, .mode = below(&m->rng, 01000)};
	afs_err want = o->type == AFS_SYMLINK ? AFS_EINVAL : AFS_OK;
	assert_err(vs_set_status(v, o->fid, &set, &who, &st), want);
	if (!want)
		o->mode = set.mode;
}

static void compare_object(struct model *m, struct vs_volume *v, int i)
{
	const struct object *o = &m->obj[i];
	struct vs_status st = status_of(v, o->fid);
	assert_int_equal(st.type, o->type);
	assert_int_equal(st.links, o->links);
	assert_int_equal(st.dv, o->dv);
	assert_int_equal(st.mode, o->mode);
	if (o->type != AFS_DIR) {
		assert_content(v, o->fid, o->bytes ? o->bytes : (const uint8_t *)"", o->n);
		assert_int_equal(st.parent.vnode, m->obj[o->parent].fid.vnode);
	}
}

static void compare(struct model *m, struct vs_volume *v)
{
	for (int i = 0; i < OBJECTS; i++)
		if (m->obj[i].live)
			compare_object(m, v, i);
	for (size_t i = 0; i < ARRAY_SIZE(m->ent); i++) {
		struct vs_fid f;
		if (!m->ent[i].used)
			continue;
		assert_ok(vs_lookup(v, m->obj[m->ent[i].dir].fid, m->ent[i].name, &f));
		assert_int_equal(f.vnode, m->obj[m->ent[i].to].fid.vnode);
		assert_int_equal(f.unique, m->obj[m->ent[i].to].fid.unique);
	}
	assert_clean(v);
	struct vs_header h;
	assert_ok(vs_volume_header(v, &h));
	int live = 0;
	for (int i = 0; i < OBJECTS; i++)
		live += m->obj[i].live;
	assert_int_equal(h.files, live);
}

static void step(struct model *m, struct vs_volume *v)
{
	who.now += MSEC(10);
	switch (below(&m->rng, 14)) {
	case 0:
	case 1:
	case 2:
		do_make(m, v, AFS_FILE);
		break;
	case 3:
		do_make(m, v, AFS_DIR);
		break;
	case 4:
		do_make(m, v, AFS_SYMLINK);
		break;
	case 5:
		do_link(m, v);
		break;
	case 6:
		do_remove(m, v, false);
		break;
	case 7:
		do_remove(m, v, true);
		break;
	case 8:
	case 9:
		do_rename(m, v);
		break;
	case 10:
		do_chmod(m, v);
		break;
	default:
		do_store(m, v);
		break;
	}
}

static void run(uint64_t seed, int steps, const struct vs_config *config)
{
	CLEANUP(fix) struct fix x = {.config = *config};
	fix_init(&x);
	struct model *m = mem_new(struct model);
	assert_non_null(m);
	m->rng = seed;
	m->unique = 2;
	new_object(m, root, AFS_DIR, 0);
	for (int i = 1; i <= steps; i++) {
		step(m, x.v);
		if (i % (steps / 4) == 0) {
			compare(m, x.v);
			fix_close(&x);
			fix_open(&x);
			compare(m, x.v);
		}
	}
	for (int i = 0; i < OBJECTS; i++)
		if (m->obj[i].live)
			kill_object(m, i);
	mem_free(m);
}

static void random_verbs_leave_what_a_model_says(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++)
		run(seed, 800, &(struct vs_config){0});
}

static void so_they_do_with_tiny_caches(void **state)
{
	(void)state;
	for (uint64_t seed = 101; seed <= 103; seed++)
		run(seed, 600,
			&(struct vs_config){.vnode_cache = 4, .dir_cache_kib = 4, .fd_cache = 1});
}

static void so_they_do_when_every_commit_is_synced(void **state)
{
	(void)state;
	run(201, 300, &(struct vs_config){.durability = VS_POWER});
}

TEST_MAIN(T(random_verbs_leave_what_a_model_says), T(so_they_do_with_tiny_caches),
	T(so_they_do_when_every_commit_is_synced))
