/* SPDX-License-Identifier: BSD-2-Clause
 * Every call of VL, PT, VOTE and DISK with arguments that no client of good will sends: cut at each word,
 * too long, array bombs, counts and ids of every extreme, names without an end, words from a fixed
 * random sequence.  Each gets an answer that its protocol knows, and the databases stay whole. */
#include "tests/lib/dbcall.h"

#include "cell/base/log.h"
#include "cell/proto/ubik.h"
#include "dbserver/pt/pt_store.h"
#include "dbserver/vl/vl_store.h"

#include <fcntl.h>
#include <unistd.h>

enum { WORDS = 700, ROUNDS = 60 };

struct fixture {
	struct dbcall vl_call, pt_call;
	struct vl *vl;
	struct pt *pt;
	char dir[64], path[80];
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	strcpy(f->dir, "/tmp/afscell-bad.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/cell.db", f->dir);
	struct dbserver_config config = dbcall_config(f->path);
	config.sync = DB_SYNC_NONE;
	assert_ok(vl_open(&config, &f->vl));
	assert_ok(pt_open(&config, &f->pt));
	vl_services(f->vl, f->vl_call.services);
	pt_services(f->pt, f->pt_call.services);
	arena_init(&f->vl_call.arena, 1 << 20);
	arena_init(&f->pt_call.arena, 1 << 20);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char side[100];
	vl_close(f->vl);
	pt_close(f->pt);
	dbcall_fini(&f->vl_call);
	dbcall_fini(&f->pt_call);
	static const char *const ends[] = {"", "-wal", "-shm"};
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		snprintf(side, sizeof(side), "%s%s", f->path, ends[i]);
		unlink(side);
	}
	rmdir(f->dir);
	free(f);
	return 0;
}

/* Codes that a caller may see: success, RXGEN's, Ubik's and the service's own. */
static bool known_code(const struct rpc_iface *iface, int32_t code)
{
	if (code == 0 || (code <= -450 && code >= -457) || (code >= 5376 && code <= 5413))
		return true;
	if (iface == &vl_iface)
		return code >= 363520 && code <= 363552;
	if (iface == &pt_iface)
		return code >= 267264 && code <= 267280;
	return code == 10029 || code == 2; /* DISK to strangers; no such server */
}

static void send_one(struct dbcall *t, const struct rpc_iface *iface, uint32_t op, const uint8_t *body, size_t len)
{
	static const char *const who[] = {NULL, "mallory", "new@OTHER.REALM", "afs"};
	for (size_t i = 0; i < ARRAY_SIZE(who); i++) {
		int32_t code = dbcall_raw(t, iface, op, who[i], body, len, NULL);
		if (!known_code(iface, code))
			fail_msg("%s %u by %s: code %d", iface->name, op, who[i] ? who[i] : "nobody", code);
	}
}

static void bad_calls(struct dbcall *t, const struct rpc_iface *iface)
{
	static const uint32_t extremes[] = {0, 1, 0xffffffff, 0x7fffffff, 0x80000000, 0x80000001, 0x10000, 500000,
		0x41414141, 0xff000001};
	static uint8_t body[WORDS * 4];
	uint32_t random = 1;
	for (uint32_t k = 0; k < iface->count; k++) {
		uint32_t op = iface->procs[k].op;
		/* one extreme everywhere, cut at each word while cuts differ, and with bytes left over */
		for (size_t e = 0; e < ARRAY_SIZE(extremes); e++) {
			for (size_t i = 0; i < WORDS; i++)
				be32_put(body + 4 * i, extremes[e]);
			for (size_t words = 0; words <= 40; words++)
				send_one(t, iface, op, body, words * 4);
			send_one(t, iface, op, body, 7);
			send_one(t, iface, op, body, sizeof(body));
			/* a list or string that says this length, over plain bytes */
			memset(body + 4, 'a', sizeof(body) - 4);
			send_one(t, iface, op, body, sizeof(body));
		}
		/* extremes in every mixture */
		for (int round = 0; round < ROUNDS; round++) {
			for (size_t i = 0; i < WORDS; i++) {
				random = random * 1664525 + 1013904223;
				be32_put(body + 4 * i, random >> 31 ? extremes[(random >> 8) % ARRAY_SIZE(extremes)] : (random >> 20) % 70);
			}
			send_one(t, iface, op, body, sizeof(body));
		}
	}
}

static void arguments_of_bad_will_get_an_answer_and_harm_nothing(void **state)
{
	struct fixture *f = *state;
	bad_calls(&f->vl_call, &vl_iface);
	bad_calls(&f->vl_call, &ubik_vote_iface);
	bad_calls(&f->vl_call, &ubik_disk_iface);
	bad_calls(&f->pt_call, &pt_iface);
	assert_ok(db_check(f->vl->w));
	/* what every cell stands on is as it was */
	static const struct {
		int32_t id;
		const char *name;
	} fixed[] = {{-204, "system:administrators"}, {-101, "system:anyuser"}, {-102, "system:authuser"},
		{32766, "anonymous"}};
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
		char name[PT_NAME_MAX + 1];
		assert_ok(pt_name_of(f->pt, fixed[i].id, name));
		assert_string_equal(name, fixed[i].name);
	}
}

int main(void)
{
	log_to(open("/dev/null", O_WRONLY), LOG_ERROR);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(arguments_of_bad_will_get_an_answer_and_harm_nothing, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
