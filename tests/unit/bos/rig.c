/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/bos/rig.h"

#include "cell/base/log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static afs_err rig_start(void *ctx, size_t i)
{
	struct rig *r = ctx;
	if (atomic_load(&r->fail_starts) > 0) {
		atomic_fetch_sub(&r->fail_starts, 1);
		return AFS_EADDRINUSE;
	}
	atomic_fetch_add(&r->starts[i], 1);
	atomic_store(&r->up[i], 1);
	return AFS_OK;
}
static void rig_stop(void *ctx, size_t i)
{
	struct rig *r = ctx;
	atomic_fetch_add(&r->stops[i], 1);
	atomic_store(&r->up[i], 0);
}
static bool rig_host(void *ctx, size_t i, char out[BOS_STR_MAX + 1])
{
	(void)ctx;
	snprintf(out, BOS_STR_MAX + 1, "db%zu.test", i + 1);
	return i < 2;
}
static bool rig_user(void *ctx, size_t i, char out[BOS_STR_MAX + 1])
{
	(void)ctx;
	snprintf(out, BOS_STR_MAX + 1, "admin");
	return i < 1;
}
static void rig_users_changed(void *ctx, const char *const *names, size_t n)
{
	struct rig *r = ctx;
	r->added[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		strcat(r->added, i ? " " : "");
		strcat(r->added, names[i]);
	}
}
static bool rig_key(void *ctx, size_t i, struct bos_key *out)
{
	(void)ctx;
	*out = (struct bos_key){.kvno = i < 2 ? 3 - (int32_t)i : 0, .checksum = 0xfedcba98, .changed = 1000};
	return i < 2;
}
static bool rig_log(void *ctx, const char *name, char out[PATH_MAX])
{
	struct rig *r = ctx;
	return strcmp(name, "BosLog") == 0 && snprintf(out, PATH_MAX, "%s", r->log) > 0;
}
static int64_t rig_program(void *ctx, const char *name)
{
	(void)ctx;
	return strcmp(name, "ptserver") == 0 ? 77 : 0;
}
static afs_err rig_repair(void *ctx, int32_t part, uint32_t volume, void (*say)(void *, const char *), void *say_ctx, const bool *cancel)
{
	struct rig *r = ctx;
	r->repaired_part = part;
	r->repaired_volume = volume;
	say(say_ctx, "looked at");
	while (atomic_load(&r->repair_holds) && !__atomic_load_n(cancel, __ATOMIC_RELAXED))
		usleep(1000);
	return AFS_OK;
}

static void make(struct rig *r)
{
	static const struct bos_instance instances[RIG_COUNT] = {{"ptserver", "simple", {"/usr/afs/bin/ptserver"}},
		{"vlserver", "simple", {"/usr/afs/bin/vlserver"}}, {"fs", "fs", {"/usr/afs/bin/fileserver", "/usr/afs/bin/volserver"}}};
	struct bos_config config = {
		.cell = "test.cell",
		.state = r->state,
		.repair_log = r->repair_log,
		.instances = instances,
		.instance_count = RIG_COUNT,
		.ports = {rig_start, rig_stop, rig_host, rig_user, rig_users_changed, rig_key, rig_log, rig_program, rig_repair},
		.ctx = r,
	};
	assert_ok(bos_server_new(&config, &r->bos));
	bos_server_services(r->bos, &r->service);
	for (int i = 0; i < RIG_COUNT; i++)
		atomic_store(&r->up[i], 1);
	assert_ok(bos_server_start(r->bos));
}

void rig_open(struct rig *r)
{
	*r = (struct rig){.dir = test_scratch()};
	log_to(-1, LOG_ERROR);
	r->state = mem_printf("%s/bos.json", r->dir);
	r->repair_log = mem_printf("%s/SalvageLog", r->dir);
	r->log = mem_printf("%s/log", r->dir);
	make(r);
}

static void take_down(struct rig *r)
{
	bos_server_stop(r->bos);
	bos_server_free(r->bos);
	r->bos = NULL;
}

void rig_again(struct rig *r)
{
	take_down(r);
	make(r);
}

void rig_close(struct rig *r)
{
	if (r->bos)
		take_down(r);
	mem_free(r->state);
	mem_free(r->repair_log);
	mem_free(r->log);
	test_scratch_free(r->dir);
}

int32_t rig_call(struct rig *r, unsigned op, enum rig_caller who, const void *in, void *out, struct arena *arena, char **text)
{
	static const struct {
		const char *name;
		enum rx_sec_level level;
		bool superuser;
	} callers[CALLERS] = {{NULL, RX_LEVEL_CLEAR, false}, {"alice", RX_LEVEL_CRYPT, false}, {"admin", RX_LEVEL_CLEAR, true},
		{"admin", RX_LEVEL_AUTH, true}, {"admin", RX_LEVEL_CRYPT, true}, {"afs", RX_LEVEL_CRYPT, true}};
	struct rx_caller caller = {.authenticated = callers[who].name != NULL, .level = callers[who].level};
	if (callers[who].name)
		strcpy(caller.name, callers[who].name);
	struct fake_conn conn = {};
	CLEANUP(fake_call) struct fake_call call;
	fake_call_init(&call, &conn, (struct rx_addr){}, &caller, r->service.ctx, 0);
	call.pub.superuser = callers[who].superuser;
	if (arena)
		call.pub.arena = arena;
	afs_err err = r->service.handlers[op](&call.pub, in, out);
	if (text)
		*text = mem_strndup(call.out.data ? call.out.data : "", call.out.len);
	return err == AFS_OK ? 0 : err == AFS_EABORTED && call.refused ? call.refused : abort_of_bos(err);
}

void rig_wait(struct rig *r, int i, int up)
{
	for (int ms = 0; ms < 10000 && atomic_load(&r->up[i]) != up; ms++)
		usleep(1000);
	assert_int_equal(atomic_load(&r->up[i]), up);
}
