/* SPDX-License-Identifier: BSD-2-Clause
 * Many threads on both databases at once, as workers and I/O threads use them: for the thread sanitizer, and
 * for promises that only hold together. */
#include "tests/lib/dbcall.h"

#include "cell/proto/ubik.h"

#include <pthread.h>
#include <stdatomic.h>

enum { WRITERS = 3, READERS = 3, ROUNDS = 60 };

static struct vl *vl;
static struct pt *pt;
static atomic_bool stop;
static atomic_int failures, reads;
#define NEED(expr) ((expr) ? (void)0 : (void)(atomic_fetch_add(&failures, 1), print_error("%s\n", #expr)))

static void *writer(void *arg)
{
	int me = *(int *)arg;
	for (int i = 0; i < ROUNDS; i++) {
		char name[32];
		uint32_t id;
		int32_t user, group;
		NEED(vl_ids_reserve(vl, 3, &id) == AFS_OK);
		struct nvldbentry e = {.nServers = 1, .serverNumber = {0x0a000001 + (uint32_t)me},
			.serverFlags = {VLSF_RW}, .volumeId = {id, id + 1, id + 2}, .flags = VLF_RW_EXISTS};
		snprintf(e.name, sizeof(e.name), "v%d.%d", me, i);
		NEED(vl_volume_create(vl, &e) == AFS_OK);
		if (i % 3 == 0)
			NEED(vl_volume_delete(vl, id) == AFS_OK);
		snprintf(name, sizeof(name), "u%d.%d", me, i);
		NEED(pt_user_add(pt, name, 0, &user) == AFS_OK);
		snprintf(name, sizeof(name), "g%d.%d", me, i);
		NEED(pt_group_add(pt, name, 0, 0, &group) == AFS_OK);
		NEED(pt_member_add(pt, user, group) == AFS_OK);
		if (i % 3 == 0)
			NEED(pt_entry_delete(pt, user) == AFS_OK);
	}
	return NULL;
}

/* A snapshot is whole: an entry has its sites, an identity its groups; generations do not go back. */
static void *reader(void *arg)
{
	(void)arg;
	uint64_t generation = 0;
	while (!atomic_load(&stop)) {
		int64_t cursor = 0;
		struct nvldbentry e;
		while (vl_volume_next(vl, &cursor, &e) == AFS_OK)
			NEED(e.nServers == 1 && e.volumeId[2] == e.volumeId[0] + 2);
		struct pt_entry p;
		for (cursor = 0; pt_entry_next(pt, &cursor, &p) == AFS_OK;) {
			if (p.name[0] != 'u')
				continue;
			struct keys_name name = {.authenticated = true, .local = true};
			struct pt_identity who;
			strcpy(name.text, p.name);
			NEED(pt_identify(pt, &name, &who) == AFS_OK);
			NEED(who.id == p.id || who.id == AFS_ANONYMOUS);
			mem_free(who.cps.v);
		}
		uint64_t now = pt_generation(pt);
		NEED(now >= generation);
		generation = now;
		atomic_fetch_add(&reads, 1);
	}
	return NULL;
}

/* What udebug asks, while versions move. */
static void *debugger(void *arg)
{
	struct dbcall t = {};
	(void)arg;
	vl_services(vl, t.services);
	int32_t last = 0;
	while (!atomic_load(&stop)) {
		struct ubik_vote_xdebug_out out;
		NEED(dbcall_raw(&t, &ubik_vote_iface, 10006, NULL, NULL, 0, &out) == 0);
		NEED(out.db.old.localVersion.counter >= last);
		last = out.db.old.localVersion.counter;
	}
	dbcall_fini(&t);
	return NULL;
}

static void threads_share_the_databases(void **state)
{
	(void)state;
	char *dir = test_scratch(), path[256];
	snprintf(path, sizeof(path), "%s/cell.db", dir);
	struct dbserver_config c = dbcall_config(path);
	assert_ok(vl_open(&c, &vl));
	assert_ok(pt_open(&c, &pt));
	pthread_t t[WRITERS + READERS + 1];
	int ids[WRITERS];
	for (int i = 0; i < READERS; i++)
		pthread_create(&t[WRITERS + i], NULL, reader, NULL);
	pthread_create(&t[WRITERS + READERS], NULL, debugger, NULL);
	for (int i = 0; i < WRITERS; i++) {
		ids[i] = i;
		pthread_create(&t[i], NULL, writer, &ids[i]);
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(t[i], NULL);
	atomic_store(&stop, true);
	for (int i = WRITERS; i < WRITERS + READERS + 1; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(atomic_load(&failures), 0);
	assert_true(atomic_load(&reads) > 0);

	int64_t cursor = 0;
	struct nvldbentry e;
	int n = 0;
	while (vl_volume_next(vl, &cursor, &e) == AFS_OK)
		n++;
	assert_int_equal(n, WRITERS * ROUNDS * 2 / 3);
	vl_close(vl);
	pt_close(pt);
	test_scratch_free(dir);
}

static void both_databases_idle_in_little_memory(void **state)
{
	(void)state;
	char *dir = test_scratch(), path[256];
	snprintf(path, sizeof(path), "%s/cell.db", dir);
	struct dbserver_config c = dbcall_config(path);
	int64_t before = db_memory_used();
	assert_ok(vl_open(&c, &vl));
	assert_ok(pt_open(&c, &pt));
	int32_t id;
	for (int i = 0; i < 300; i++) {
		char name[16];
		snprintf(name, sizeof(name), "u%d", i);
		assert_ok(pt_user_add(pt, name, 0, &id));
		assert_ok(pt_id_of(pt, name, &id));
	}
	int64_t used = db_memory_used() - before;
	vl_close(vl);
	pt_close(pt);
	test_scratch_free(dir);
	printf("# %lld KiB\n", (long long)used / 1024);
	assert_in_range(used, 1, 2 << 20);
}

TEST_MAIN(T(threads_share_the_databases), T(both_databases_idle_in_little_memory))
