/* SPDX-License-Identifier: BSD-2-Clause
 * Failures are walked: the first, the second, ... allocation or write fails, and each time the
 * store is as before or as after.  Disks fill up: told cleanly, nothing half done, and everything
 * goes on once there is room. */
#include "store_lib.h"

#include "cell/db/vfs.h"
#include "fileserver/store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = (4 << 20) + 400000 };
static uint8_t data[9 << 20];

/* --- the whole of a volume as one text ------------------------------------------------ */

static void print_tree(struct vs_volume *v, struct vs_fid dir, struct buf *out);

static afs_err print_entry(void *ctx, const struct vs_dir_entry *e)
{
	struct {
		struct vs_volume *v;
		struct buf *out;
	} *c = ctx;
	struct vs_node n;
	const struct vs_fid f = {e->vnode, e->unique};
	buf_printf(c->out, "%s=%u.%u", e->name, e->vnode, e->unique);
	if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0)
		return AFS_OK;
	TRY(vs_node_get(c->v, f, &n));
	buf_printf(c->out, " t%d l%u n%llu v%llu m%o a%d c%llu s%llu p%u acl%d;", (int)n.st.type,
		n.st.links, (unsigned long long)n.st.length, (unsigned long long)n.st.dv, n.st.mode,
		n.st.author, (unsigned long long)n.st.client_mtime,
		(unsigned long long)n.st.server_mtime, n.st.parent.vnode, n.acl.positive);
	if (n.st.type == AFS_DIR) {
		print_tree(c->v, f, c->out);
		return AFS_OK;
	}
	size_t len;
	CLEANUP(heap) uint8_t *p = content(c->v, f, &len);
	buf_printf(c->out, "crc%08x\n", vs_crc32c(0, p, len));
	return AFS_OK;
}

static void print_tree(struct vs_volume *v, struct vs_fid dir, struct buf *out)
{
	size_t n;
	CLEANUP(heap) uint8_t *p = content(v, dir, &n);
	struct vs_dir d = {.data = p, .pages = (uint32_t)(n / VS_DIR_PAGE)};
	struct {
		struct vs_volume *v;
		struct buf *out;
	} c = {v, out};
	buf_printf(out, "{dv%llu ", (unsigned long long)status_of(v, dir).dv);
	assert_ok(vs_dir_each(&d, print_entry, &c));
	buf_puts(out, "}\n");
}

static char *picture(struct vs_volume *v)
{
	struct buf b = {0};
	struct vs_header h;
	assert_ok(vs_volume_header(v, &h));
	buf_printf(&b, "%s q%llu u%llu f%llu ", h.name, (unsigned long long)h.quota_kib,
		(unsigned long long)h.used_kib, (unsigned long long)h.files);
	print_tree(v, root, &b);
	return buf_take(&b);
}

/* --- what is walked ------------------------------------------------------------------- */

struct scene {
	struct fix x;
	struct vs_fid d, e, large, small, linked, sub;
};

static void scene_init(struct scene *s, enum vs_durability durability)
{
	struct vs_made m;
	*s = (struct scene){
		.x.config = {.durability = durability, .fd_cache = 1, .vnode_cache = 8}};
	fix_init(&s->x);
	struct vs_volume *v = s->x.v;
	s->d = make_folder(v, root, "d");
	s->e = make_folder(v, root, "e");
	s->sub = make_folder(v, s->d, "sub");
	s->large = make_file(v, s->d, "large");
	s->small = make_file(v, s->d, "small");
	s->linked = make_file(v, s->d, "linked");
	assert_ok(vs_link(v, s->d, "linked2", s->linked, &who, &m));
	store(v, s->large, 0, data, LARGE, LARGE);
	store(v, s->small, 0, data, 3000, 3000);
	make_file(v, s->e, "target");
	for (int i = 0; i < 46; i++) { /* e: the next name but one needs a page */
		char name[16];
		snprintf(name, sizeof(name), "fill%d", i);
		make_file(v, s->e, name);
	}
}

typedef afs_err verb(struct scene *s);

static afs_err v_create(struct scene *s)
{
	struct vs_made m;
	return vs_create_file(s->x.v, s->d, "new", &who, NULL, &m);
}
static afs_err v_create_page(struct scene *s)
{
	struct vs_made m;
	TRY(vs_create_file(s->x.v, s->e, "a-longer-name-that-needs-a-new-page", &who, NULL, &m));
	return AFS_OK;
}
static afs_err v_mkdir(struct scene *s)
{
	struct vs_made m;
	return vs_make_dir(s->x.v, s->d, "new", &who, NULL, &m);
}
static afs_err v_symlink(struct scene *s)
{
	struct vs_made m;
	return vs_make_symlink(s->x.v, s->d, "new", "text", 4, &who, NULL, &m);
}
static afs_err v_link(struct scene *s)
{
	struct vs_made m;
	return vs_link(s->x.v, s->d, "new", s->small, &who, &m);
}
static afs_err v_remove(struct scene *s)
{
	struct vs_removed r;
	return vs_remove(s->x.v, s->d, "large", &who, &r);
}
static afs_err v_unlink(struct scene *s)
{
	struct vs_removed r;
	return vs_remove(s->x.v, s->d, "linked", &who, &r);
}
static afs_err v_rmdir(struct scene *s)
{
	struct vs_removed r;
	return vs_remove_dir(s->x.v, s->d, "sub", &who, &r);
}
static afs_err v_rename_over(struct scene *s)
{
	struct vs_renamed n;
	return vs_rename(s->x.v, s->d, "large", s->e, "target", true, &who, &n);
}
static afs_err v_rename_dir(struct scene *s)
{
	struct vs_renamed n;
	return vs_rename(s->x.v, s->d, "sub", s->e, "sub", true, &who, &n);
}
static afs_err v_chmod(struct scene *s)
{
	struct vs_status st;
	return vs_set_status(
		s->x.v, s->large, &(struct vs_set){.mask = VS_SET_MODE, .mode = 0600}, &who, &st);
}
static afs_err v_acl(struct scene *s)
{
	struct vs_status st;
	const struct vs_acl acl = {.positive = 2, .e = {{1, 1}, {2, 2}}};
	return vs_set_acl(s->x.v, s->d, &acl, &who, &st);
}
static afs_err v_header(struct scene *s)
{
	const struct vs_header h = {.name = "renamed", .quota_kib = 123456};
	return vs_volume_set_header(s->x.v, &h, VS_H_NAME | VS_H_QUOTA);
}
static afs_err stored(struct scene *s, struct vs_fid f, uint64_t pos, size_t n, uint64_t length)
{
	struct vs_writer *w;
	struct vs_status st;
	const struct vs_write req = {.pos = pos, .length = n, .file_length = length};
	TRY(vs_write_begin(s->x.v, f, &req, &who, &w));
	(void)vs_write_put(w, data + 5, n); /* sticks: the end says it */
	return vs_write_end(w, &who, &st);
}
static afs_err v_store_small(struct scene *s) { return stored(s, s->small, 10, 2000, 3000); }
static afs_err v_store_grow(struct scene *s) { return stored(s, s->small, 100, 300000, 300100); }
static afs_err v_store_append(struct scene *s)
{
	return stored(s, s->large, LARGE, 100000, LARGE + 100000);
}
static afs_err v_store_anew(struct scene *s) { return stored(s, s->large, 0, LARGE, LARGE); }
static afs_err v_store_part(struct scene *s)
{
	return stored(s, s->large, 1 << 20, 2 << 20, LARGE);
}
static afs_err v_store_cut(struct scene *s) { return stored(s, s->large, 4400000, 0, 4400000); }
static afs_err v_store_cut_small(struct scene *s) { return stored(s, s->large, 50, 20, 70); }
static afs_err v_store_tail(struct scene *s)
{
	return stored(s, s->large, LARGE - 100, 5000, LARGE + 4900);
}
static afs_err v_restore(struct scene *s)
{
	char why[VS_WHY];
	struct vs_stage *g;
	CLEANUP(vs_dir) struct vs_dir r = {0};
	const struct vs_acl acl = {.positive = 1, .e = {{-204, 127}}};
	struct vs_status st = {.fid = {1, 1}, .type = AFS_DIR, .mode = 0777};
	afs_err err = AFS_OK;
	if (vs_dir_make(&r, 1, 1, 1, 1) ||
		vs_dir_add(&r, "large", s->large.vnode, s->large.unique) ||
		vs_dir_add(&r, "n", 20, 90))
		return AFS_ENOMEM;
	TRY(vs_stage_begin(s->x.v, &g));
	(void)vs_stage_vnode(g, &st, &acl);
	(void)vs_stage_put(g, r.data, VS_DIR_PAGE);
	(void)vs_stage_keep(g, s->large);
	st.fid = (struct vs_fid){20, 90};
	st.type = AFS_FILE;
	(void)vs_stage_vnode(g, &st, NULL);
	(void)vs_stage_put(g, data, 5 << 20);
	err = vs_stage_commit(g, &(struct vs_header){0}, 0, who.now, why);
	vs_stage_free(g);
	return err;
}

static const struct {
	const char *name;
	verb *fn;
	bool may_tear; /* overwrites in place: DV may have moved on with old bytes */
} verbs[] = {
	{"create", v_create, false},
	{"create with a new page", v_create_page, false},
	{"mkdir", v_mkdir, false},
	{"symlink", v_symlink, false},
	{"link", v_link, false},
	{"remove", v_remove, false},
	{"unlink", v_unlink, false},
	{"rmdir", v_rmdir, false},
	{"rename over", v_rename_over, false},
	{"rename a directory", v_rename_dir, false},
	{"chmod", v_chmod, false},
	{"acl", v_acl, false},
	{"header", v_header, false},
	{"store small", v_store_small, false},
	{"store, growing", v_store_grow, false},
	{"store, appending", v_store_append, false},
	{"store anew", v_store_anew, false},
	{"store part", v_store_part, false},
	{"store, cutting", v_store_cut, false},
	{"store, cutting to small", v_store_cut_small, false},
	{"store over the end", v_store_tail, true},
	{"restore", v_restore, false},
};

static void assert_before_or_after(
	struct scene *s, size_t i, const char *before, const char *after, afs_err err, long n)
{
	CLEANUP(str) char *now = picture(s->x.v);
	const char *want = err ? before : after;
	if (strcmp(now, want) != 0 && !(err && verbs[i].may_tear))
		fail_msg("%s: failure %ld gave %s and left something else:\n%s\n%s", verbs[i].name,
			n, afs_err_name(err), want, now);
	assert_clean(s->x.v);
}

static char *picture_after(size_t i)
{
	struct scene s;
	scene_init(&s, VS_PROCESS);
	assert_ok(verbs[i].fn(&s));
	char *p = picture(s.x.v);
	fix_fini(&s.x);
	return p;
}

/* `cold`: the caches are empty, so that loading is walked too. */
static void walk_allocations(bool cold)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		CLEANUP(str) char *after = picture_after(i);
		struct scene s;
		scene_init(&s, VS_PROCESS);
		CLEANUP(str) char *before = picture(s.x.v);
		afs_err err = AFS_ENOMEM;
		long n = 0;
		log_to(open("/dev/null", O_WRONLY), LOG_ERROR);
		for (; err; n += n < 12 ? 1 : 4) {
			if (cold) {
				assert_ok(vs_volume_lock(s.x.v, true));
				vs_volume_shut_locked(s.x.v);
				vs_volume_unlock(s.x.v);
			}
			mem_fail_after(n);
			err = verbs[i].fn(&s);
			bool failed = mem_has_failed();
			mem_fail_after(-1);
			if (err != AFS_OK && (err != AFS_ENOMEM || !failed))
				fail_msg("%s: allocation %ld gave %s", verbs[i].name, n,
					afs_err_name(err));
			assert_before_or_after(&s, i, before, after, err, n);
			assert_true(n < 2000);
		}
		if (cold)
			assert_true(n > 1);
		fix_close(&s.x);
		fix_open(&s.x);
		assert_before_or_after(&s, i, before, after, AFS_OK, n);
		log_to(2, LOG_ERROR);
		fix_fini(&s.x);
	}
}

static void each_allocation_may_fail_with_warm_caches(void **state)
{
	(void)state;
	walk_allocations(false);
}

static void each_allocation_may_fail_with_cold_caches(void **state)
{
	(void)state;
	walk_allocations(true);
}

static void walk_writes(enum vs_durability durability, int eno, afs_err want)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		CLEANUP(str) char *after = picture_after(i);
		afs_err err = want;
		log_to(open("/dev/null", O_WRONLY), LOG_ERROR);
		for (long n = 0; err; n += 1 + n / 4) {
			struct scene s; /* anew each time: a torn store may move DV on */
			scene_init(&s, durability);
			CLEANUP(str) char *before = picture(s.x.v);
			atomic_store(&vs_fail_write_errno, eno);
			atomic_store(&vs_fail_write_after, n);
			err = verbs[i].fn(&s);
			atomic_store(&vs_fail_write_after, -1);
			if (err && err != want)
				fail_msg("%s: write %ld gave %s", verbs[i].name, n,
					afs_err_name(err));
			assert_before_or_after(&s, i, before, after, err, n);
			fix_close(&s.x);
			fix_open(&s.x);
			assert_before_or_after(&s, i, before, after, err, n);
			fix_fini(&s.x);
		}
		log_to(2, LOG_ERROR);
	}
}

static void each_write_of_content_may_fail(void **state)
{
	(void)state;
	walk_writes(VS_PROCESS, EIO, AFS_EIO);
}

static void each_write_of_content_may_find_the_disk_full(void **state)
{
	(void)state;
	walk_writes(VS_POWER, ENOSPC, AFS_EDISKFULL);
}

/* Every write to the database's log, in place of those to extents. */
static void walk_commits(int eno, afs_err want)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		CLEANUP(str) char *after = picture_after(i);
		afs_err err = want;
		struct scene s;
		scene_init(&s, VS_PROCESS);
		CLEANUP(str) char *before = picture(s.x.v);
		log_to(open("/dev/null", O_WRONLY), LOG_ERROR);
		for (long n = 0; err; n++) {
			atomic_store(&db_fail_write_errno, eno);
			atomic_store(&db_fail_write_after, n);
			err = verbs[i].fn(&s);
			atomic_store(&db_fail_write_after, -1);
			if (err && err != want)
				fail_msg("%s: commit %ld gave %s", verbs[i].name, n,
					afs_err_name(err));
			assert_before_or_after(&s, i, before, after, err, n);
			assert_true(n < 50 && (n > 0 || err)); /* every verb commits */
		}
		fix_close(&s.x);
		fix_open(&s.x);
		assert_before_or_after(&s, i, before, after, AFS_OK, 0);
		log_to(2, LOG_ERROR);
		fix_fini(&s.x);
	}
}

static void each_commit_may_fail(void **state)
{
	(void)state;
	walk_commits(EIO, AFS_EIO);
}

static void each_commit_may_find_the_disk_full(void **state)
{
	(void)state;
	walk_commits(ENOSPC, AFS_EDISKFULL);
}

/* --- a disk that is really full ------------------------------------------------------- */

static bool own_small_disk(const char *dir, const char *size)
{
	char opt[64];
	snprintf(opt, sizeof(opt), "size=%s", size);
	return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", dir, "tmpfs", 0, opt) == 0;
}

static void fill_and_drain(struct fix *x)
{
	struct vs_made m;
	struct vs_status st;
	struct vs_removed r;
	char name[32];
	int files = 0;
	afs_err err = AFS_OK;
	for (; !err; files++) { /* small files until no row can be written */
		snprintf(name, sizeof(name), "f%d", files);
		err = vs_create_file(x->v, root, name, &who, NULL, &m);
		if (!err)
			err = try_store(x->v, m.node.fid, 0, data, 4000, 4000, &st);
	}
	assert_err(err, AFS_EDISKFULL);
	assert_true(files > 100);
	/* without the reserve to stop it, the disk itself says so, in the middle of anything */
	x->s->config.reserve_kib = 0;
	struct vs_fid big;
	assert_ok(vs_lookup(x->v, root, "f0", &big));
	for (int i = 0; i < 40; i++) {
		const struct vs_write req = {
			.pos = 0, .length = sizeof(data), .file_length = sizeof(data)};
		struct vs_writer *w;
		x->p->space_at = clk_mono();
		x->p->space.free_kib = UINT32_MAX; /* a stale figure */
		err = vs_write_begin(x->v, big, &req, &who, &w);
		assert_ok(err);
		err = vs_write_put(w, data, sizeof(data));
		assert_err(err, AFS_EDISKFULL);
		assert_err(vs_write_end(w, &who, &st), AFS_EDISKFULL);
		snprintf(name, sizeof(name), "g%d", i);
		x->p->space_at = clk_mono();
		x->p->space.free_kib = UINT32_MAX;
		err = vs_create_file(x->v, root, name, &who, NULL, &m);
		assert_true(err == AFS_OK || err == AFS_EDISKFULL);
	}
	assert_content(x->v, big, data, 4000);
	x->s->config.reserve_kib = 1024;
	for (int i = 1; i < files - 1; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_ok(vs_remove(x->v, root, name, &who, &r)); /* removal needs no room */
	}
	vs_store_housekeep(x->s);
	assert_clean(x->v);
	fix_close(x);
	fix_open(x);
	assert_clean(x->v);
	assert_content(x->v, big, data, 4000);
	store(x->v, big, 0, data, 1 << 20, 1 << 20);
	assert_content(x->v, big, data, 1 << 20);
}

static void a_full_disk_is_told_and_survived(void **state)
{
	(void)state;
	char *dir = test_scratch();
	pid_t child = fork();
	if (child == 0) { /* its mounts go with it */
		if (!own_small_disk(dir, "24m"))
			_exit(77);
		struct fix x = {.config = {.reserve_kib = 1024}, .dir = dir};
		log_to(open("/dev/null", O_WRONLY), LOG_ERROR);
		fix_attach(&x);
		x.v = make_volume(&x, VOL, "test");
		fill_and_drain(&x);
		fix_close(&x);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	test_scratch_free(dir);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip(); /* needs root, for a mount of its own */
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int fill(void **state)
{
	(void)state;
	uint64_t rng = 11;
	for (size_t i = 0; i < sizeof(data); i += 4)
		data[i] = (uint8_t)next_random(&rng);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_allocation_may_fail_with_warm_caches),
		T(each_allocation_may_fail_with_cold_caches),
		T(each_write_of_content_may_fail),
		T(each_write_of_content_may_find_the_disk_full),
		T(each_commit_may_fail),
		T(each_commit_may_find_the_disk_full),
		T(a_full_disk_is_told_and_survived),
	};
	return cmocka_run_group_tests_name(__FILE__, tests, fill, NULL);
}
