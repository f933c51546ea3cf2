/* SPDX-License-Identifier: BSD-2-Clause
 * Killed at a write-class system call: six scripted workloads, each a list of steps of which a step is
 * one verb of the store or a few.  A child does them under ptrace and is killed when it is about to
 * make its n-th call that changes a file.  Then everything must check clean, and what is there must be
 * what there was after the last acknowledged step or after the one in progress; steps of several verbs
 * may also leave what is between two of them, which the workload then names.
 *
 * All n are walked with AFSCELL_CRASH_POINTS=0 (make check-slow); else about that many in all. */
#include "tests/unit/store/digest.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

enum { STEPS_MAX = 40, BYTES = 6 << 20 };
static uint8_t data[BYTES];

struct world {
	struct fix x;
	struct vs_partition *b;
};
struct shared {
	volatile int acknowledged;
	uint64_t after[STEPS_MAX + 1]; /* of the world, after so many steps */
};
static struct shared *m;

static void world_open(struct world *w)
{
	char b[300];
	snprintf(b, sizeof(b), "%s/b", w->x.dir);
	fix_attach(&w->x);
	assert_ok(vs_partition_attach(w->x.s, "b", b, &w->b));
	(void)vs_volume_find(w->x.s, NULL, VOL, &w->x.v); /* a move takes it away */
}

static uint64_t world_digest(struct world *w)
{
	uint64_t h = 0;
	for (struct vs_partition *p = NULL; (p = vs_partition_next(w->x.s, p));) {
		struct vs_listed *l;
		size_t n;
		assert_ok(vs_volume_list(p, &l, &n));
		for (size_t i = 0; i < n; i++) {
			struct vs_volume *v;
			struct vs_header head;
			assert_ok(vs_volume_find(w->x.s, p, l[i].id, &v));
			assert_ok(vs_volume_header(v, &head));
			const uint64_t sum[] = {vs_partition_id(p), l[i].id, head.type, head.in_service,
				head.destroy_me, digest(v)};
			h = mix(h + 1, sum, sizeof(sum));
			vs_volume_unref(v);
		}
		mem_free(l);
	}
	return h;
}

static void world_check(struct world *w)
{
	for (struct vs_partition *p = NULL; (p = vs_partition_next(w->x.s, p));) {
		struct vs_listed *l;
		size_t n;
		assert_ok(vs_volume_list(p, &l, &n));
		for (size_t i = 0; i < n; i++) {
			struct vs_volume *v;
			assert_ok(vs_volume_find(w->x.s, p, l[i].id, &v));
			assert_clean(v);
			vs_volume_unref(v);
		}
		mem_free(l);
	}
}

/* --- workloads -------------------------------------------------------------------------- */

static void put(struct vs_volume *v, const char *name, uint64_t pos, size_t n, uint32_t seed)
{
	struct vs_fid f;
	if (vs_lookup(v, root, name, &f) != AFS_OK)
		f = make_file(v, root, name);
	store(v, f, pos, data + seed, n, UINT64_MAX);
}

static int names(struct world *w, int step)
{
	char a[16], b[16];
	struct vs_removed r;
	struct vs_renamed n;
	snprintf(a, sizeof(a), "f%d", step / 4);
	snprintf(b, sizeof(b), "g%d", step / 4);
	switch (step % 4) {
	case 0:
		make_file(w->x.v, root, a);
		break;
	case 1:
		make_folder(w->x.v, root, b);
		break;
	case 2:
		assert_ok(vs_rename(w->x.v, root, a, root, "x", true, &who, &n));
		break;
	case 3:
		assert_ok(vs_remove_dir(w->x.v, root, b, &who, &r));
		break;
	}
	return step == 20;
}

static int large(struct world *w, int step)
{
	struct vs_fid f;
	if (step == 0) {
		make_file(w->x.v, root, "big");
		return 0;
	}
	assert_ok(vs_lookup(w->x.v, root, "big", &f));
	uint64_t end = status_of(w->x.v, f).length;
	if (step == 4) /* cut */
		store(w->x.v, f, 0, data, 0, 4200000);
	else /* behind the end */
		store(w->x.v, f, end, data + step, 1500000 + 4000 * (size_t)step, UINT64_MAX);
	return step == 7;
}

static void clone(struct world *w, afs_volid id, enum afs_voltype type)
{
	struct vs_header h = {.id = id, .type = type, .name = "clone"};
	struct vs_volume *c;
	assert_ok(vs_clone_make(w->x.v, &h, SEC(77), &c));
	vs_volume_unref(c);
}

static void drop(struct world *w, struct vs_partition *p, afs_volid id)
{
	struct vs_volume *v;
	assert_ok(vs_volume_find(w->x.s, p, id, &v));
	assert_ok(vs_volume_delete(v));
	vs_volume_unref(v);
}

static int clones(struct world *w, int step)
{
	if (step == 0) {
		struct vs_fid f = make_file(w->x.v, root, "a");
		(void)f;
		return 0;
	}
	switch (step % 5) {
	case 0:
		drop(w, NULL, VOL + (afs_volid)step - 3);
		break;
	case 2:
		clone(w, VOL + (afs_volid)step, AFS_VOL_BK);
		break;
	default: { /* one verb each */
		struct vs_fid f;
		assert_ok(vs_lookup(w->x.v, root, "a", &f));
		store(w->x.v, f, status_of(w->x.v, f).length, data, step % 5 == 1 ? 900000 : 3000, UINT64_MAX);
	}
	}
	vs_store_housekeep(w->x.s);
	return step == 10;
}

/* All of `from` into `to`, by way of a stage; what is older than a version stays as it is there. */
static void copy_volume(struct vs_volume *from, struct vs_volume *to, bool keep_some)
{
	static uint8_t bytes[1 << 20];
	struct vs_stage *g;
	char why[VS_WHY];
	assert_ok(vs_volume_claim(to, VS_CLAIM_OFF));
	assert_ok(vs_stage_begin(to, &g));
	for (int dirs = 1; dirs >= 0; dirs--) {
		struct vs_status st;
		struct vs_acl acl;
		for (uint32_t after = 0; vs_vnode_next(from, dirs, after, &st, &acl) == AFS_OK; after = st.fid.vnode) {
			struct vs_file *f;
			size_t got;
			if (keep_some && !dirs && st.fid.vnode % 4) {
				assert_ok(vs_stage_keep(g, st.fid));
				continue;
			}
			assert_ok(vs_stage_vnode(g, &st, dirs ? &acl : NULL));
			assert_ok(vs_file_open_claimed(from, st.fid, &st, &f));
			for (uint64_t pos = 0; pos < st.length; pos += got) {
				assert_ok(vs_file_read(f, pos, bytes, sizeof(bytes), &got));
				assert_ok(vs_stage_put(g, bytes, got));
			}
			vs_file_close(f);
		}
	}
	assert_ok(vs_stage_commit(g, NULL, 0, SEC(5), why));
	vs_stage_free(g);
	assert_ok(vs_volume_claim(to, VS_FREE));
}

static struct vs_volume *target(struct vs_partition *p, afs_volid id, enum afs_voltype type)
{
	struct vs_header h = {.id = id, .type = type, .parent = VOL, .name = "target"};
	struct vs_volume *v;
	assert_ok(vs_volume_create(p, &h, true, SEC(4), &v));
	return v;
}

static void put_some(struct world *w)
{
	put(w->x.v, "s1", 0, 3000, 1);
	put(w->x.v, "s2", 0, 5000000, 2);
	put(w->x.v, "s3", 0, 70000, 3);
}

static int restore(struct world *w, int step)
{
	struct vs_volume *v;
	switch (step) {
	case 0:
		vs_volume_unref(target(w->x.p, VOL + 1, AFS_VOL_RW));
		return 0;
	case 1: case 2:
		assert_ok(vs_volume_find(w->x.s, NULL, VOL + 1, &v));
		copy_volume(w->x.v, v, step == 2);
		vs_volume_unref(v);
		return 0;
	default: /* over one that has a clone */
		if (step == 3) {
			clone(w, VOL + 2, AFS_VOL_BK);
			return 0;
		}
		assert_ok(vs_volume_find(w->x.s, NULL, VOL + 1, &v));
		copy_volume(v, w->x.v, false);
		vs_volume_unref(v);
		return 1;
	}
}

static int move(struct world *w, int step)
{
	struct vs_volume *v;
	struct vs_header h = {0};
	if (step == 0) {
		vs_volume_unref(target(w->b, VOL, AFS_VOL_RW));
		return 0;
	}
	assert_ok(vs_volume_find(w->x.s, w->b, VOL, &v));
	switch (step) {
	case 1:
		copy_volume(w->x.v, v, false);
		break;
	case 2:
		assert_ok(vs_volume_set_header(w->x.v, &h, VS_H_IN_SERVICE));
		break;
	case 3:
		h.in_service = true;
		assert_ok(vs_volume_set_header(v, &h, VS_H_IN_SERVICE | VS_H_DESTROY_ME));
		break;
	case 4:
		assert_ok(vs_volume_delete(w->x.v));
		break;
	}
	vs_volume_unref(v);
	return step == 4;
}

static int release(struct world *w, int step)
{
	struct vs_volume *c, *v;
	switch (step) {
	case 0:
		clone(w, VOL + 1, AFS_VOL_RO);
		return 0;
	case 1:
		vs_volume_unref(target(w->b, VOL + 1, AFS_VOL_RO));
		return 0;
	case 2: case 5:
		assert_ok(vs_volume_find(w->x.s, w->x.p, VOL + 1, &c));
		assert_ok(vs_volume_find(w->x.s, w->b, VOL + 1, &v));
		copy_volume(c, v, step == 5);
		vs_volume_unref(c);
		vs_volume_unref(v);
		return step == 5;
	case 3: {
		struct vs_fid f;
		assert_ok(vs_lookup(w->x.v, root, "s1", &f));
		store(w->x.v, f, 3000, data, 100000, UINT64_MAX);
		return 0;
	}
	default:
		assert_ok(vs_volume_find(w->x.s, w->x.p, VOL + 1, &c));
		assert_ok(vs_clone_refresh(w->x.v, c, SEC(99)));
		vs_volume_unref(c);
		return 0;
	}
}

static const struct workload {
	const char *name;
	int (*step)(struct world *w, int step); /* true: it was the last */
	bool some; /* begins with files */
} workloads[] = {
	{"names", names, false},
	{"a large store", large, false},
	{"clones while writing", clones, false},
	{"restore", restore, true},
	{"move", move, true},
	{"release", release, true},
};

/* --- walking ---------------------------------------------------------------------------- */

static bool changes_files(const struct __ptrace_syscall_info *i)
{
	static const long calls[] = {SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_ftruncate, SYS_renameat,
		SYS_renameat2, SYS_unlinkat, SYS_mkdirat, SYS_symlinkat, SYS_linkat, SYS_fsync, SYS_fdatasync,
		SYS_copy_file_range, SYS_fallocate,
#ifdef SYS_unlink
		SYS_unlink, SYS_mkdir, SYS_rename,
#endif
	};
	for (size_t k = 0; k < ARRAY_SIZE(calls); k++)
		if ((long)i->entry.nr == calls[k])
			return true;
	return (long)i->entry.nr == SYS_openat && (i->entry.args[2] & 0100); /* O_CREAT */
}

/* Does the workload in a child that dies before its `nth` change (0: never).  Gives how many it made. */
static long run_child(struct world *w, const struct workload *k, long nth)
{
	m->acknowledged = 0;
	pid_t child = fork();
	if (child == 0) {
		world_open(w);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(9);
		raise(SIGSTOP);
		for (int step = 0;; step++) {
			bool last = k->step(w, step);
			m->acknowledged = step + 1;
			if (!nth)
				m->after[step + 1] = world_digest(w);
			if (last)
				break;
		}
		_exit(0);
	}
	int status;
	long made = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFSTOPPED(status))
		fail_msg("the child could not be traced: status %x", status);
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
	for (int sig = 0;;) {
		struct __ptrace_syscall_info info;
		assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, sig), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (!WIFSTOPPED(status))
			break;
		sig = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
		if (sig || ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) <= 0 ||
			info.op != PTRACE_SYSCALL_INFO_ENTRY || !changes_files(&info))
			continue;
		if (++made == nth) {
			kill(child, SIGKILL);
			assert_int_equal(waitpid(child, &status, 0), child);
			break;
		}
	}
	if (WIFEXITED(status) && WEXITSTATUS(status))
		fail_msg("%s: the child ended by itself: %d", k->name, WEXITSTATUS(status));
	return made;
}

static void set_up(struct world *w, const struct workload *k)
{
	*w = (struct world){0};
	fix_init(&w->x);
	if (k->some)
		put_some(w);
	fix_close(&w->x);
	world_open(w);
	m->after[0] = world_digest(w);
	fix_close(&w->x);
}

static void walk(const struct workload *k, long points)
{
	struct world w;
	set_up(&w, k);
	const long all = run_child(&w, k, 0), steps = points ? points : all;
	fix_fini(&w.x);
	assert_true(all > 10);
	for (long i = 0; i < steps; i++) {
		long nth = points && all > points ? 1 + i * (all - 1) / (points - 1) : 1 + i;
		if (nth > all)
			break;
		set_up(&w, k);
		(void)run_child(&w, k, nth);
		world_open(&w);
		world_check(&w);
		uint64_t is = world_digest(&w);
		int done = m->acknowledged;
		if (is != m->after[done] && is != m->after[done + 1])
			fail_msg("%s: killed at change %ld of %ld, after %d steps: what is there is neither what was nor "
				 "what was to be",
				k->name, nth, all, done);
		fix_fini(&w.x);
	}
	print_message("%s: %ld changes\n", k->name, all);
}

static void killed_at_a_write_everything_is_as_before_or_after(void **state)
{
	(void)state;
	const char *s = getenv("AFSCELL_CRASH_POINTS");
	long points = s && *s ? atol(s) : 200;
	uint64_t rng = 9;
	for (size_t i = 0; i < sizeof(data); i += 4)
		data[i] = (uint8_t)next_random(&rng);
	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(m != MAP_FAILED);
	for (size_t i = 0; i < ARRAY_SIZE(workloads); i++)
		walk(&workloads[i], points / (long)ARRAY_SIZE(workloads));
	munmap(m, sizeof(*m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {T(killed_at_a_write_everything_is_as_before_or_after)};
	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
