/* SPDX-License-Identifier: BSD-2-Clause
 * kill -9 at random instants: a child does random verbs on a volume, and notes each in memory
 * shared with its parent before it begins and when it was acknowledged.  After the kill the volume
 * must check clean, hold every acknowledged verb, and the one in progress wholly or not at all.
 * (In-place overwriting is the one exception that the store declares: then DV has moved on, and
 * each byte is the old or the new one.)  AFSCELL_CRASH_ROUNDS and AFSCELL_CRASH_SEED in the
 * environment choose how many and which. */
#include "tests/unit/store/store_lib.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DIRS = 4, SLOTS = 40, LARGE_SLOTS = 3, SMALL_MAX = 12000, LARGE_MAX = 9 << 20 };

enum op_kind {
	OP_NONE,
	OP_CREATE,
	OP_STORE,
	OP_REMOVE,
	OP_RENAME,
	OP_MKDIR,
	OP_RMDIR,
	OP_CHMOD,
	OP_SYMLINK
};
enum progress { IDLE, INTENDED, ACKNOWLEDGED };

struct op {
	enum op_kind kind;
	unsigned slot, to; /* to: of a rename */
	uint32_t pos, n, file_length, seed, mode;
};
struct slot { /* name s<i> in directory i % DIRS */
	bool there;
	enum afs_filetype type;
	uint64_t dv;
	uint32_t mode, length;
};
struct shared {
	volatile sig_atomic_t progress;
	struct op op;
	struct slot before; /* op.slot as it was */
	uint64_t rng;
	long done;
	struct slot slot[SLOTS];
	uint8_t small[SLOTS][SMALL_MAX];
	uint8_t large[LARGE_SLOTS][LARGE_MAX];
};

static uint8_t *bytes_of(struct shared *m, unsigned slot)
{
	return slot < LARGE_SLOTS ? m->large[slot] : m->small[slot];
}
static uint32_t most(unsigned slot) { return slot < LARGE_SLOTS ? LARGE_MAX : SMALL_MAX; }
static uint8_t pattern(uint32_t seed, uint32_t i)
{
	return (uint8_t)((seed * 2654435761u + i / 3 * 40503u) >> 11);
}
static void slot_name(unsigned slot, char out[24])
{
	snprintf(out, 24, "slot-%u%s", slot, slot % 3 ? "" : "-of-two-slots");
}

/* --- the model ------------------------------------------------------------------------ */

/* Makes no difference when done twice: the child may die in the middle of it. */
static void apply(struct shared *m, const struct op *op, const struct slot *before)
{
	struct slot *s = &m->slot[op->slot];
	switch (op->kind) {
	case OP_NONE:
		break;
	case OP_CREATE:
		*s = (struct slot){.there = true, .type = AFS_FILE, .mode = 0777};
		break;
	case OP_MKDIR:
		*s = (struct slot){.there = true, .type = AFS_DIR, .mode = 0777};
		break;
	case OP_SYMLINK:
		*s = (struct slot){.there = true, .type = AFS_SYMLINK, .mode = 0777, .length = 6};
		break;
	case OP_REMOVE:
	case OP_RMDIR:
		s->there = false;
		break;
	case OP_CHMOD:
		s->mode = op->mode;
		break;
	case OP_RENAME: {
		struct slot moved = *before;
		moved.dv += moved.type == AFS_DIR && op->slot % DIRS != op->to % DIRS;
		memcpy(bytes_of(m, op->to), bytes_of(m, op->slot), before->length);
		m->slot[op->to] = moved;
		s->there = false;
		break;
	}
	case OP_STORE: {
		uint8_t *b = bytes_of(m, op->slot);
		uint32_t kept = MIN(before->length, op->file_length);
		uint32_t length = op->n ? MAX(kept, op->pos + op->n) : MAX(kept, op->pos);
		if (length > kept)
			memset(b + kept, 0, length - kept);
		for (uint32_t i = 0; i < op->n; i++)
			b[op->pos + i] = pattern(op->seed, i);
		*s = *before;
		s->length = length;
		s->dv = before->dv + 1;
		break;
	}
	}
}

static struct op choose(struct shared *m)
{
	uint64_t *r = &m->rng;
	struct op op = {.slot = below(r, 4) ? LARGE_SLOTS + below(r, SLOTS - LARGE_SLOTS)
					    : below(r, LARGE_SLOTS)};
	const struct slot *s = &m->slot[op.slot];
	op.seed = next_random(r);
	if (!s->there) {
		op.kind = op.slot < LARGE_SLOTS || below(r, 4) ? OP_CREATE
			  : below(r, 2)                        ? OP_MKDIR
							       : OP_SYMLINK;
		return op;
	}
	uint32_t k = below(r, 12);
	if (k == 0) {
		op.kind = s->type == AFS_DIR ? OP_RMDIR : OP_REMOVE;
	} else if (k == 1 && op.slot >= LARGE_SLOTS) {
		op.kind = OP_RENAME;
		op.to = LARGE_SLOTS + below(r, SLOTS - LARGE_SLOTS);
		bool replaces = m->slot[op.to].there;
		if (op.to == op.slot ||
			(replaces && (m->slot[op.to].type == AFS_DIR) != (s->type == AFS_DIR)))
			op.kind = OP_NONE;
	} else if (k == 2 && s->type != AFS_SYMLINK) {
		op.kind = OP_CHMOD;
		op.mode = below(r, 01000);
	} else if (s->type == AFS_FILE) {
		uint32_t max = most(op.slot);
		op.kind = OP_STORE;
		op.pos = below(r, 2) ? s->length : s->length ? below(r, s->length) : 0;
		op.n = below(r, 3) ? below(r, max / 4) : below(r, 5000);
		if (below(r, 5) == 0)
			op.pos = op.n = 0, op.n = below(r, max);
		if (op.pos + op.n > max)
			op.n = max - op.pos;
		op.file_length = below(r, 3) ? max : below(r, max);
	}
	return op;
}

/* --- the child ------------------------------------------------------------------------ */

static struct vs_fid dirs[DIRS];

static struct vs_fid fid_of(struct vs_volume *v, unsigned slot)
{
	char name[24];
	struct vs_fid f = {0};
	slot_name(slot, name);
	assert_ok(vs_lookup(v, dirs[slot % DIRS], name, &f));
	return f;
}

static afs_err carry_out(struct vs_volume *v, const struct op *op)
{
	char name[24], to[24];
	struct vs_made made;
	struct vs_removed removed;
	struct vs_renamed renamed;
	struct vs_status st;
	const struct vs_fid dir = dirs[op->slot % DIRS];
	slot_name(op->slot, name);
	slot_name(op->to, to);
	switch (op->kind) {
	case OP_NONE:
		return AFS_OK;
	case OP_CREATE:
		return vs_create_file(v, dir, name, &who, NULL, &made);
	case OP_MKDIR:
		return vs_make_dir(v, dir, name, &who, NULL, &made);
	case OP_SYMLINK:
		return vs_make_symlink(v, dir, name, "target", 6, &who, NULL, &made);
	case OP_REMOVE:
		return vs_remove(v, dir, name, &who, &removed);
	case OP_RMDIR:
		return vs_remove_dir(v, dir, name, &who, &removed);
	case OP_RENAME:
		return vs_rename(v, dir, name, dirs[op->to % DIRS], to, true, &who, &renamed);
	case OP_CHMOD:
		return vs_set_status(v, fid_of(v, op->slot),
			&(struct vs_set){.mask = VS_SET_MODE, .mode = op->mode}, &who, &st);
	case OP_STORE: {
		static uint8_t junk[LARGE_MAX];
		struct vs_writer *w;
		const struct vs_write req = {
			.pos = op->pos, .length = op->n, .file_length = op->file_length};
		for (uint32_t i = 0; i < op->n; i++)
			junk[i] = pattern(op->seed, i);
		TRY(vs_write_begin(v, fid_of(v, op->slot), &req, &who, &w));
		for (uint32_t at = 0; at < op->n; at += 90001)
			(void)vs_write_put(w, junk + at, MIN(op->n - at, 90001u));
		return vs_write_end(w, &who, &st);
	}
	}
	return AFS_EINVAL;
}

static void open_volume(struct fix *x)
{
	fix_open(x);
	for (unsigned i = 0; i < DIRS; i++) {
		char name[8];
		snprintf(name, sizeof(name), "d%u", i);
		assert_ok(vs_lookup(x->v, root, name, &dirs[i]));
	}
}

static void *keep(void *s)
{
	vs_store_keep(s);
	return NULL;
}

static void work_until_killed(struct fix *x, struct shared *m)
{
	pthread_t t;
	open_volume(x);
	pthread_create(&t, NULL, keep, x->s);
	for (;;) {
		const struct op op = choose(m);
		m->op = op;
		m->before = m->slot[op.slot];
		atomic_signal_fence(memory_order_seq_cst);
		m->progress = INTENDED;
		if (carry_out(x->v, &op) != AFS_OK)
			_exit(3);
		m->progress = ACKNOWLEDGED;
		atomic_signal_fence(memory_order_seq_cst);
		apply(m, &op, &m->before);
		atomic_signal_fence(memory_order_seq_cst);
		m->done++;
		m->progress = IDLE;
		who.now += MSEC(1);
	}
}

/* --- the verdict ---------------------------------------------------------------------- */

static bool same_slot(struct vs_volume *v, struct shared *m, unsigned slot,
	const uint8_t *mixed_with, bool *mixed)
{
	const struct slot *s = &m->slot[slot];
	char name[24];
	struct vs_fid f;
	struct vs_node n;
	slot_name(slot, name);
	afs_err err = vs_lookup(v, dirs[slot % DIRS], name, &f);
	if (err == AFS_ENOENT || !s->there)
		return err == AFS_ENOENT && !s->there;
	assert_ok(err);
	assert_ok(vs_node_get(v, f, &n));
	if (n.st.type != s->type || n.st.dv != s->dv || n.st.mode != s->mode)
		return false;
	if (s->type == AFS_DIR)
		return true;
	if (n.st.length != s->length)
		return false;
	size_t len;
	CLEANUP(heap) uint8_t *have = content(v, f, &len);
	const uint8_t *want =
		s->type == AFS_SYMLINK ? (const uint8_t *)"target" : bytes_of(m, slot);
	for (size_t i = 0; i < len; i++) {
		if (have[i] == want[i])
			continue;
		if (!mixed_with || have[i] != mixed_with[i])
			return false;
		*mixed = true;
	}
	return true;
}

static bool same(struct vs_volume *v, struct shared *m, int except, int and_except)
{
	for (int i = 0; i < SLOTS; i++)
		if (i != except && i != and_except && !same_slot(v, m, (unsigned)i, NULL, NULL)) {
			print_error("slot %d differs\n", i);
			return false;
		}
	return true;
}

/* 0, or which rule is broken. */
static int verdict(struct fix *x, struct shared *m)
{
	const struct op op = m->op;
	const int to = op.kind == OP_RENAME ? (int)op.to : -1;
	bool mixed = false;
	size_t n = 0;
	open_volume(x);
	if (vs_check(x->v, print_finding, NULL, &n) != AFS_OK || n)
		return 1;
	if (m->progress == ACKNOWLEDGED)
		apply(m, &op, &m->before);
	if (m->progress != INTENDED)
		return same(x->v, m, -1, -1) ? 0 : 2;
	if (!same(x->v, m, (int)op.slot, to))
		return 3;
	if (same_slot(x->v, m, op.slot, NULL, NULL) &&
		(to < 0 || same_slot(x->v, m, op.to, NULL, NULL)))
		return 0; /* as before */
	CLEANUP(heap) uint8_t *was = mem_alloc(LARGE_MAX, 1);
	uint32_t kept = MIN(m->before.length, op.file_length);
	memcpy(was, bytes_of(m, op.slot), kept);
	apply(m, &op, &m->before);
	if (!same_slot(x->v, m, op.slot, op.kind == OP_STORE ? was : NULL, &mixed) ||
		(to >= 0 && !same_slot(x->v, m, op.to, NULL, NULL)))
		return 4; /* neither before nor after */
	if (mixed) {      /* the model goes on with what is there */
		CLEANUP(heap) uint8_t *have = content(x->v, fid_of(x->v, op.slot), &n);
		memcpy(bytes_of(m, op.slot), have, n);
	}
	return 0;
}

static int reap(pid_t child)
{
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void sleep_us(long us)
{
	const struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
	nanosleep(&t, NULL);
}

static long from_environment(const char *name, long otherwise)
{
	const char *s = getenv(name);
	return s && *s ? atol(s) : otherwise;
}

static void run(enum vs_durability durability, long rounds, uint64_t seed)
{
	CLEANUP(fix) struct fix x = {.config = {.durability = durability, .fd_cache = 4}};
	fix_init(&x);
	for (unsigned i = 0; i < DIRS; i++) {
		char name[8];
		snprintf(name, sizeof(name), "d%u", i);
		make_folder(x.v, root, name);
	}
	fix_close(&x);
	struct shared *m =
		mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(m != MAP_FAILED);
	m->rng = seed;
	uint64_t rng = seed;
	for (long i = 0; i < rounds; i++) {
		m->progress = IDLE;
		pid_t child = fork();
		if (child == 0)
			work_until_killed(&x, m);
		sleep_us(2000 + below(&rng, 60000));
		kill(child, SIGKILL);
		int how = reap(child);
		if (how != 1000 + SIGKILL)
			fail_msg("round %ld, seed %llu: the worker ended by itself: %d", i,
				(unsigned long long)seed, how);
		child = fork();
		if (child == 0) {
			int v = verdict(&x, m);
			if (v || below(&rng, 2))
				_exit(v); /* dies again, without a word */
			fix_close(&x);
			_exit(0);
		}
		how = reap(child);
		(void)below(&rng, 2);
		if (how)
			fail_msg("round %ld, seed %llu, operation %d on slot %u, progress %d: "
				 "verdict %d",
				i, (unsigned long long)seed, (int)m->op.kind, m->op.slot,
				(int)m->progress, how);
	}
	print_message("%ld rounds, %ld verbs acknowledged\n", rounds, m->done);
	assert_true(m->done > rounds);
	munmap(m, sizeof(*m));
}

static void killed_at_any_instant_a_volume_is_right_and_holds_what_was_acknowledged(void **state)
{
	(void)state;
	run(VS_PROCESS, from_environment("AFSCELL_CRASH_ROUNDS", 40),
		(uint64_t)from_environment("AFSCELL_CRASH_SEED", 1));
}

static void so_it_is_when_commits_are_synced(void **state)
{
	(void)state;
	run(VS_POWER, from_environment("AFSCELL_CRASH_ROUNDS", 40) / 4,
		(uint64_t)from_environment("AFSCELL_CRASH_SEED", 1) + 1000);
}

TEST_MAIN(T(killed_at_any_instant_a_volume_is_right_and_holds_what_was_acknowledged),
	T(so_it_is_when_commits_are_synced))
