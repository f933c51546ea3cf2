/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/bos/rig.h"

#include "cell/bos/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>

#define S(t) XDR_STR_OF(t)
enum { RIG_ARENA = 1 << 20 };

/* --- who may ----------------------------------------------------------------------------------------------- */

static void one_function_says_who_may_do_what(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct rx_caller caller;
		bool superuser;
		afs_err want[BOS_VERBS]; /* SEE READ RUN SET MEND PROGRAM IDENTITY */
	} rows[] = {
#define NO AFS_EACCESS
#define LV AFS_ELEVEL
		{"nobody", {}, false, {AFS_OK, NO, NO, NO, NO, NO, NO}},
		{"nobody, where all are superusers", {}, true, {AFS_OK, NO, NO, NO, NO, NO, NO}},
		{"user", {.authenticated = true, .level = RX_LEVEL_CRYPT}, false, {AFS_OK, NO, NO, NO, NO, NO, NO}},
		{"administrator, clear", {.authenticated = true}, true, {AFS_OK, LV, LV, LV, LV, NO, NO}},
		{"administrator, auth", {.authenticated = true, .level = RX_LEVEL_AUTH}, true, {AFS_OK, LV, LV, LV, LV, NO, NO}},
		{"administrator", {.authenticated = true, .level = RX_LEVEL_CRYPT}, true, {AFS_OK, AFS_OK, AFS_OK, AFS_OK, AFS_OK, NO, NO}},
#undef NO
#undef LV
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int v = 0; v < BOS_VERBS; v++)
			if (bos_may(&rows[i].caller, rows[i].superuser, (enum bos_verb)v) != rows[i].want[v])
				fail_msg("%s, verb %d", rows[i].name, v);
}

/* Every row of bos.rpc, with arguments that make sense, for every kind of caller. */
static void every_call_follows_the_rule(void **state)
{
	(void)state;
	enum { SEE, READ, CHANGE, NEVER };
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, RIG_ARENA);
	const struct {
		unsigned op;
		int kind;
		const void *in;
		int32_t done; /* what those who may get */
	} rows[] = {
		{bos_op_create_bnode, NEVER, &(struct bos_create_bnode_in){.type = S("simple"), .instance = S("x"), .p1 = S("/bin/sh")}, 0},
		{bos_op_delete_bnode, NEVER, &(struct bos_delete_bnode_in){S("fs")}, 0},
		{bos_op_set_status, CHANGE, &(struct bos_set_status_in){S("fs"), BOS_RUNNING}, 0},
		{bos_op_get_status, SEE, &(struct bos_get_status_in){S("fs")}, 0},
		{bos_op_enumerate_instance, SEE, &(struct bos_enumerate_instance_in){0}, 0},
		{bos_op_get_instance_info, SEE, &(struct bos_get_instance_info_in){S("fs")}, 0},
		{bos_op_get_instance_parm, SEE, &(struct bos_get_instance_parm_in){S("fs"), 1}, 0},
		{bos_op_add_suser, CHANGE, &(struct bos_add_suser_in){S("admin")}, 17},
		{bos_op_delete_suser, CHANGE, &(struct bos_delete_suser_in){S("nosuch")}, 2},
		{bos_op_list_susers, SEE, &(struct bos_list_susers_in){0}, 0},
		{bos_op_list_keys, READ, &(struct bos_list_keys_in){0}, 0},
		{bos_op_add_key, NEVER, &(struct bos_add_key_in){.kvno = 9}, 0},
		{bos_op_delete_key, READ, &(struct bos_delete_key_in){9}, 70354689},
		{bos_op_set_cell_name, NEVER, &(struct bos_set_cell_name_in){S("evil.cell")}, 0},
		{bos_op_get_cell_name, SEE, &(struct bos_get_cell_name_in){}, 0},
		{bos_op_get_cell_host, SEE, &(struct bos_get_cell_host_in){1}, 0},
		{bos_op_add_cell_host, NEVER, &(struct bos_add_cell_host_in){S("evil.host")}, 0},
		{bos_op_delete_cell_host, NEVER, &(struct bos_delete_cell_host_in){S("db1.test")}, 0},
		{bos_op_set_tstatus, CHANGE, &(struct bos_set_tstatus_in){S("fs"), BOS_RUNNING}, 0},
		{bos_op_startup_all, CHANGE, &(struct bos_startup_all_in){}, 0},
		{bos_op_restart_all, CHANGE, &(struct bos_restart_all_in){}, 0},
		{bos_op_re_bozo, CHANGE, &(struct bos_re_bozo_in){}, 0},
		{bos_op_set_no_auth_flag, NEVER, &(struct bos_set_no_auth_flag_in){1}, 0},
		{bos_op_set_no_auth_flag, CHANGE, &(struct bos_set_no_auth_flag_in){0}, 0},
		{bos_op_restart, CHANGE, &(struct bos_restart_in){S("vlserver")}, 0},
		{bos_op_install, NEVER, &(struct bos_install_in){S("/usr/afs/bin/ptserver"), 1, 0755, 1}, 0},
		{bos_op_uninstall, NEVER, &(struct bos_uninstall_in){S("/usr/afs/bin/ptserver")}, 0},
		{bos_op_get_dates, SEE, &(struct bos_get_dates_in){S("/usr/afs/bin/ptserver")}, 0},
		{bos_op_exec, NEVER, &(struct bos_exec_in){S("/bin/true")}, 0},
		{bos_op_prune, NEVER, &(struct bos_prune_in){7}, 0},
		{bos_op_set_restart_time, CHANGE, &(struct bos_set_restart_time_in){1, {.mask = BOS_KT_NEVER}}, 0},
		{bos_op_get_restart_time, SEE, &(struct bos_get_restart_time_in){1}, 0},
		{bos_op_get_log, READ, &(struct bos_get_log_in){S("nosuch")}, BZ_NOENT},
		{bos_op_get_instance_strings, SEE, &(struct bos_get_instance_strings_in){S("fs")}, 0},
		{bos_op_get_restricted_mode, SEE, &(struct bos_get_restricted_mode_in){}, 0},
		{bos_op_set_restricted_mode, CHANGE, &(struct bos_set_restricted_mode_in){1}, 0},
		{bos_op_set_restricted_mode, NEVER, &(struct bos_set_restricted_mode_in){0}, 0},
		{bos_op_shutdown_all, CHANGE, &(struct bos_shutdown_all_in){}, 0},
		{bos_op_wait_all, CHANGE, &(struct bos_wait_all_in){}, 0},
	};
	bool seen[bos_op_count] = {};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		seen[rows[i].op] = true;
		for (int who = NOBODY; who < CALLERS; who++) {
			_Alignas(16) uint8_t out[4096] = {};
			bool clear = who == ADMIN_CLEAR || who == ADMIN_AUTH, strong = who == ADMIN_CRYPT || who == LOCALAUTH;
			int32_t want = rows[i].kind == SEE ? rows[i].done : rows[i].kind != NEVER && strong ? rows[i].done
									  : rows[i].kind != NEVER && clear ? BZ_ENCREQ
													   : BZ_ACCESS;
			if (who == ADMIN_CLEAR || who == ADMIN_AUTH)
				want = rows[i].kind == NEVER && rows[i].op != bos_op_set_restricted_mode ? BZ_ACCESS : want;
			if (rows[i].op == bos_op_set_restricted_mode && clear)
				want = BZ_ENCREQ;
			int32_t got = rig_call(&r, rows[i].op, (enum rig_caller)who, rows[i].in, out, &arena, NULL);
			if (got != want)
				fail_msg("%s, caller %d: %d in place of %d", bos_iface.procs[rows[i].op].name, who, got, want);
		}
	}
	for (unsigned op = 0; op < bos_op_count; op++)
		if (!seen[op])
			fail_msg("no row for %s", bos_iface.procs[op].name);
}

/* --- lists --------------------------------------------------------------------------------------------------- */

static void numbers_that_are_out_of_range_end_lists(void **state)
{
	(void)state;
	static const uint32_t bad[] = {3, 4, 0x7fffffff, 0x80000000, 0xffffffff};
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct bos_enumerate_instance_out e = {};
		struct bos_get_instance_parm_out p = {};
		struct bos_list_susers_out u = {};
		struct bos_list_keys_out k = {};
		struct bos_get_cell_host_out h = {};
		CLEANUP(arena) struct arena arena;
		arena_init(&arena, RIG_ARENA);
		assert_int_equal(rig_call(&r, bos_op_enumerate_instance, NOBODY, &(struct bos_enumerate_instance_in){bad[i]}, &e, &arena, NULL), BZ_DOM);
		assert_int_equal(rig_call(&r, bos_op_get_instance_parm, NOBODY, &(struct bos_get_instance_parm_in){S("fs"), bad[i]}, &p, &arena, NULL), BZ_DOM);
		assert_int_equal(rig_call(&r, bos_op_list_susers, NOBODY, &(struct bos_list_susers_in){bad[i]}, &u, &arena, NULL), 1); /* as stock servers */
		assert_int_equal(rig_call(&r, bos_op_list_keys, ADMIN_CRYPT, &(struct bos_list_keys_in){bad[i]}, &k, &arena, NULL), BZ_DOM);
		assert_int_equal(rig_call(&r, bos_op_get_cell_host, NOBODY, &(struct bos_get_cell_host_in){bad[i]}, &h, &arena, NULL), BZ_DOM);
		assert_null(e.name.p);
	}
	struct bos_get_instance_parm_out p = {};
	assert_int_equal(rig_call(&r, bos_op_get_instance_parm, NOBODY, &(struct bos_get_instance_parm_in){S("fs"), BOS_PARM_NOTIFIER}, &p, NULL, NULL), BZ_NOENT);
}

static void keys_are_numbers_and_checksums(void **state)
{
	(void)state;
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	struct bos_list_keys_out out = {};
	static const int32_t zeros[8];
	assert_int_equal(rig_call(&r, bos_op_list_keys, ADMIN_CRYPT, &(struct bos_list_keys_in){1}, &out, NULL, NULL), 0);
	assert_int_equal(out.kvno, 2);
	assert_int_equal(out.info.keyCheckSum, 0xfedcba98);
	assert_int_equal(out.info.mod_sec, 1000);
	assert_memory_equal(out.key.data, zeros, sizeof(zeros));
	CLEANUP(buf) struct buf b = {};
	xdr_print_bos_add_key_in(&b, &(struct bos_add_key_in){.kvno = 1, .key = {{1, 2, 3, 4, 5, 6, 7, 8}}});
	assert_string_equal(b.data, "{\"kvno\":1,\"key\":{\"bytes\":8}}");
}

/* --- goals --------------------------------------------------------------------------------------------------- */

static void stopping_is_for_good_and_shutting_down_for_now(void **state)
{
	(void)state;
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	struct bos_set_status_out o;
	assert_int_equal(rig_call(&r, bos_op_set_status, ADMIN_CRYPT, &(struct bos_set_status_in){S("vlserver"), BOS_SHUTDOWN}, &o, NULL, NULL), 0);
	assert_int_equal(rig_call(&r, bos_op_set_tstatus, ADMIN_CRYPT, &(struct bos_set_tstatus_in){S("fs"), BOS_SHUTDOWN}, &o, NULL, NULL), 0);
	assert_int_equal(rig_call(&r, bos_op_wait_all, ADMIN_CRYPT, &(struct bos_wait_all_in){}, &o, NULL, NULL), 0);
	assert_int_equal(atomic_load(&r.up[RIG_VL]), 0);
	assert_int_equal(atomic_load(&r.up[RIG_FS]), 0);
	assert_int_equal(atomic_load(&r.up[RIG_PT]), 1);
	rig_again(&r);
	rig_wait(&r, RIG_VL, 0);
	assert_int_equal(atomic_load(&r.up[RIG_FS]), 1);
	/* started for now: the file keeps it off */
	assert_int_equal(rig_call(&r, bos_op_set_tstatus, ADMIN_CRYPT, &(struct bos_set_tstatus_in){S("vlserver"), BOS_RUNNING}, &o, NULL, NULL), 0);
	rig_wait(&r, RIG_VL, 1);
	struct bos_get_instance_info_out info = {};
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, RIG_ARENA);
	assert_int_equal(rig_call(&r, bos_op_get_instance_info, NOBODY, &(struct bos_get_instance_info_in){S("vlserver")}, &info, &arena, NULL), 0);
	assert_int_equal(info.status.goal, BOS_RUNNING);
	assert_int_equal(info.status.fileGoal, BOS_SHUTDOWN);
	assert_int_equal(rig_call(&r, bos_op_set_status, ADMIN_CRYPT, &(struct bos_set_status_in){S("vlserver"), BOS_RUNNING}, &o, NULL, NULL), 0);
	rig_again(&r);
	assert_int_equal(rig_call(&r, bos_op_wait_all, ADMIN_CRYPT, &(struct bos_wait_all_in){}, &o, NULL, NULL), 0);
	assert_int_equal(atomic_load(&r.up[RIG_VL]), 1);
}

static void goals_that_are_none_are_refused(void **state)
{
	(void)state;
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	struct bos_set_status_out o;
	static const int32_t bad[] = {-1, 2, 3, 0x7fffffff};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(rig_call(&r, bos_op_set_status, ADMIN_CRYPT, &(struct bos_set_status_in){S("fs"), bad[i]}, &o, NULL, NULL), BZ_DOM);
		assert_int_equal(rig_call(&r, bos_op_set_tstatus, ADMIN_CRYPT, &(struct bos_set_tstatus_in){S("fs"), bad[i]}, &o, NULL, NULL), BZ_DOM);
	}
	assert_int_equal(rig_call(&r, bos_op_set_status, ADMIN_CRYPT, &(struct bos_set_status_in){S("nosuch"), 1}, &o, NULL, NULL), BZ_NOENT);
	assert_int_equal(rig_call(&r, bos_op_set_status, ADMIN_CRYPT, &(struct bos_set_status_in){S(""), 1}, &o, NULL, NULL), BZ_NOENT);
}

static void a_restart_stops_and_starts_and_answers_after(void **state)
{
	(void)state;
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	struct bos_restart_out o;
	assert_int_equal(rig_call(&r, bos_op_restart, ADMIN_CRYPT, &(struct bos_restart_in){S("vlserver")}, &o, NULL, NULL), 0);
	assert_int_equal(atomic_load(&r.stops[RIG_VL]), 1);
	assert_int_equal(atomic_load(&r.starts[RIG_VL]), 1);
	assert_int_equal(atomic_load(&r.up[RIG_VL]), 1);
	assert_int_equal(atomic_load(&r.stops[RIG_FS]), 0);
	/* also what was stopped */
	assert_int_equal(rig_call(&r, bos_op_set_tstatus, ADMIN_CRYPT, &(struct bos_set_tstatus_in){S("vlserver"), BOS_SHUTDOWN}, &o, NULL, NULL), 0);
	rig_wait(&r, RIG_VL, 0);
	assert_int_equal(rig_call(&r, bos_op_restart, ADMIN_CRYPT, &(struct bos_restart_in){S("vlserver")}, &o, NULL, NULL), 0);
	assert_int_equal(atomic_load(&r.up[RIG_VL]), 1);
}

static void a_start_that_fails_is_tried_again(void **state)
{
	(void)state;
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	struct bos_set_status_out o;
	struct bos_get_instance_info_out info = {};
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, RIG_ARENA);
	atomic_store(&r.fail_starts, 1);
	assert_int_equal(rig_call(&r, bos_op_restart, ADMIN_CRYPT, &(struct bos_restart_in){S("fs")}, &o, NULL, NULL), 0);
	assert_int_equal(atomic_load(&r.up[RIG_FS]), 1);
	assert_int_equal(rig_call(&r, bos_op_get_instance_info, NOBODY, &(struct bos_get_instance_info_in){S("fs")}, &info, &arena, NULL), 0);
	assert_true(info.status.lastErrorExit > 0);
	assert_int_equal(info.status.errorCode, afs_err_errno(AFS_EADDRINUSE));
	assert_int_equal(info.status.flags & BOS_ERROR_STOP, 0);
}

/* --- superusers ------------------------------------------------------------------------------------------------ */

static void superusers_are_added_kept_and_removed(void **state)
{
	(void)state;
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	struct bos_add_suser_out o;
	assert_int_equal(rig_call(&r, bos_op_add_suser, ADMIN_CRYPT, &(struct bos_add_suser_in){S("bob")}, &o, NULL, NULL), 0);
	assert_int_equal(rig_call(&r, bos_op_add_suser, ADMIN_CRYPT, &(struct bos_add_suser_in){S("eve@other.cell")}, &o, NULL, NULL), 0);
	assert_int_equal(rig_call(&r, bos_op_add_suser, ADMIN_CRYPT, &(struct bos_add_suser_in){S("bob")}, &o, NULL, NULL), 17);
	assert_string_equal(r.added, "bob eve@other.cell");
	r.added[0] = '\0';
	rig_again(&r);
	assert_string_equal(r.added, "bob eve@other.cell");
	struct bos_list_susers_out u = {};
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, RIG_ARENA);
	assert_int_equal(rig_call(&r, bos_op_list_susers, NOBODY, &(struct bos_list_susers_in){1}, &u, &arena, NULL), 0);
	assert_string_equal(u.name.p, "bob");
	assert_int_equal(rig_call(&r, bos_op_delete_suser, ADMIN_CRYPT, &(struct bos_delete_suser_in){S("bob")}, &o, NULL, NULL), 0);
	assert_string_equal(r.added, "eve@other.cell");
	assert_int_equal(rig_call(&r, bos_op_delete_suser, ADMIN_CRYPT, &(struct bos_delete_suser_in){S("bob")}, &o, NULL, NULL), 2);
	/* the configuration's are removed there */
	assert_int_equal(rig_call(&r, bos_op_delete_suser, ADMIN_CRYPT, &(struct bos_delete_suser_in){S("admin")}, &o, NULL, NULL), BZ_ACCESS);
}

static void names_that_could_be_lines_of_a_file_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "a b", "a\nroot", "a\"b", "a\\b", "\xc3\xa4"};
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	struct bos_add_suser_out o;
	char longest[BOS_STR_MAX + 1];
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(rig_call(&r, bos_op_add_suser, ADMIN_CRYPT, &(struct bos_add_suser_in){S(bad[i])}, &o, NULL, NULL), BZ_SYNTAX);
	assert_int_equal(rig_call(&r, bos_op_add_suser, ADMIN_CRYPT, &(struct bos_add_suser_in){S(longest)}, &o, NULL, NULL), BZ_SYNTAX);
	assert_string_equal(r.added, "");
}

static void a_change_that_cannot_be_kept_is_not_made(void **state)
{
	(void)state;
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	struct bos_add_suser_out o;
	CLEANUP(str) char *tmp = mem_printf("%s.new", r.state);
	assert_int_equal(mkdir(tmp, 0700), 0); /* where the file is written aside */
	assert_int_not_equal(rig_call(&r, bos_op_add_suser, ADMIN_CRYPT, &(struct bos_add_suser_in){S("bob")}, &o, NULL, NULL), 0);
	assert_int_not_equal(rig_call(&r, bos_op_set_status, ADMIN_CRYPT, &(struct bos_set_status_in){S("fs"), 0}, &o, NULL, NULL), 0);
	assert_int_not_equal(rig_call(&r, bos_op_set_restart_time, ADMIN_CRYPT, &(struct bos_set_restart_time_in){1, {.mask = BOS_KT_NOW}}, &o, NULL, NULL), 0);
	assert_int_equal(rmdir(tmp), 0);
	assert_string_equal(r.added, "");
	assert_int_equal(atomic_load(&r.up[RIG_FS]), 1);
	struct bos_get_restart_time_out t = {};
	assert_int_equal(rig_call(&r, bos_op_get_restart_time, NOBODY, &(struct bos_get_restart_time_in){1}, &t, NULL, NULL), 0);
	assert_int_equal(t.time.mask, BOS_KT_NEVER);
}

/* --- settings --------------------------------------------------------------------------------------------------- */

static void restart_times_are_judged_and_kept(void **state)
{
	(void)state;
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	struct bos_set_restart_time_out o;
	struct bos_get_restart_time_out t = {};
	static const struct bozo_netKTime bad[] = {{.mask = 0x40}, {.mask = 3, .hour = 24}, {.mask = 3, .min = -1}, {.mask = 7, .sec = 60},
		{.mask = 15, .day = 7}};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(rig_call(&r, bos_op_set_restart_time, ADMIN_CRYPT, &(struct bos_set_restart_time_in){1, bad[i]}, &o, NULL, NULL), BZ_SYNTAX);
	assert_int_equal(rig_call(&r, bos_op_set_restart_time, ADMIN_CRYPT, &(struct bos_set_restart_time_in){3, {.mask = BOS_KT_NOW}}, &o, NULL, NULL), BZ_DOM);
	assert_int_equal(rig_call(&r, bos_op_get_restart_time, NOBODY, &(struct bos_get_restart_time_in){0}, &t, NULL, NULL), BZ_DOM);
	assert_int_equal(rig_call(&r, bos_op_set_restart_time, ADMIN_CRYPT, &(struct bos_set_restart_time_in){2, {15, 4, 0, 0, 6}}, &o, NULL, NULL), 0);
	rig_again(&r);
	assert_int_equal(rig_call(&r, bos_op_get_restart_time, NOBODY, &(struct bos_get_restart_time_in){2}, &t, NULL, NULL), 0);
	assert_int_equal(t.time.mask, 15);
	assert_int_equal(t.time.hour, 4);
	assert_int_equal(t.time.day, 6);
}

static void the_next_time_is_reckoned_by_day_and_hour(void **state)
{
	(void)state;
	enum { HOUR = 3600, DAY = 24 * HOUR, THURSDAY = 1796256000 }; /* 2026-12-03 00:00:00 UTC */
	setenv("TZ", "UTC", 1);
	tzset();
	static const struct {
		struct bozo_netKTime t; /* mask, hour, min, sec, day */
		int64_t after, want;
	} rows[] = {
		{{.mask = BOS_KT_NEVER}, THURSDAY, INT64_MAX},
		{{.mask = BOS_KT_NOW}, THURSDAY, INT64_MAX},
		{{3, 5, 0, 0, 0}, THURSDAY, THURSDAY + 5 * HOUR},
		{{3, 5, 30, 0, 0}, THURSDAY + 5 * HOUR, THURSDAY + 5 * HOUR + 1800},
		{{3, 5, 0, 0, 0}, THURSDAY + 5 * HOUR, THURSDAY + DAY + 5 * HOUR}, /* this one is over */
		{{15, 4, 0, 0, 0}, THURSDAY, THURSDAY + 3 * DAY + 4 * HOUR},      /* Sunday */
		{{15, 4, 0, 9, 4}, THURSDAY + 5 * HOUR, THURSDAY + 7 * DAY + 4 * HOUR + 9},
		{{2, 0, 20, 0, 0}, THURSDAY + HOUR, THURSDAY + HOUR + 1200}, /* every hour */
		{{3, 0, 0, 0, 0}, 1798761599, 1798761600},                   /* the year ends */
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (bos_time_next(&rows[i].t, rows[i].after) != rows[i].want)
			fail_msg("row %zu: %lld", i, (long long)bos_time_next(&rows[i].t, rows[i].after));
}

static void the_general_restart_is_carried_out(void **state)
{
	(void)state;
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	struct bos_set_restart_time_out o;
	assert_int_equal(rig_call(&r, bos_op_set_tstatus, ADMIN_CRYPT, &(struct bos_set_tstatus_in){S("ptserver"), BOS_SHUTDOWN}, &(struct bos_set_tstatus_out){}, NULL, NULL), 0);
	rig_wait(&r, RIG_PT, 0);
	int vl = r.starts[RIG_VL], pt = r.starts[RIG_PT];
	assert_int_equal(rig_call(&r, bos_op_set_restart_time, ADMIN_CRYPT, &(struct bos_set_restart_time_in){1, {3, 5, 0, 0, 0}}, &o, NULL, NULL), 0);
	mtx_lock(&r.bos->lock);
	int64_t due = r.bos->general_due;
	assert_true(due > bos_now());
	bos_due_locked(r.bos, due - 1);
	bool early = r.bos->run[RIG_VL].restart;
	bos_due_locked(r.bos, due);
	assert_true(r.bos->general_due > due);
	mtx_unlock(&r.bos->lock);
	assert_false(early);
	while (r.starts[RIG_VL] == vl)
		usleep(1000);
	rig_wait(&r, RIG_VL, 1);
	/* "now" is at once, and once */
	vl = r.starts[RIG_VL];
	assert_int_equal(rig_call(&r, bos_op_set_restart_time, ADMIN_CRYPT, &(struct bos_set_restart_time_in){1, {.mask = BOS_KT_NOW}}, &o, NULL, NULL), 0);
	while (r.starts[RIG_VL] == vl)
		usleep(1000);
	rig_wait(&r, RIG_VL, 1);
	assert_int_equal(r.starts[RIG_PT], pt); /* what is off stays off */
}

/* --- logs and repair ----------------------------------------------------------------------------------------------- */

static void logs_are_known_by_name_only(void **state)
{
	(void)state;
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	FILE *f = fopen(r.log, "w");
	assert_non_null(f);
	fwrite("one\0two\n", 1, 8, f);
	fclose(f);
	struct bos_get_log_out o;
	CLEANUP(str) char *text = NULL;
	assert_int_equal(rig_call(&r, bos_op_get_log, ADMIN_CRYPT, &(struct bos_get_log_in){S("/usr/afs/logs/BosLog")}, &o, NULL, &text), 0);
	assert_string_equal(text, "onetwo\n");
	CLEANUP(str) char *path = mem_printf("../../..%s", r.log);
	const char *bad[] = {"nosuch", "", ".", "..", "../BosLog", "/etc/passwd", "/usr/afs/logs/../../../etc/passwd", r.log, path};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(rig_call(&r, bos_op_get_log, ADMIN_CRYPT, &(struct bos_get_log_in){S(bad[i])}, &o, NULL, NULL), BZ_NOENT);
}

static int32_t mend(struct rig *r, const char *cmd)
{
	struct bos_create_bnode_out o;
	return rig_call(r, bos_op_create_bnode, ADMIN_CRYPT,
		&(struct bos_create_bnode_in){.type = S("cron"), .instance = S("salvage-tmp"), .p1 = S(cmd), .p2 = S("now"), .notifier = S("__NONOTIFIER__")},
		&o, NULL, NULL);
}

static void wait_mended(struct rig *r)
{
	struct bos_get_instance_info_out info = {};
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, RIG_ARENA);
	for (int ms = 0; ms < 10000; ms++) {
		if (rig_call(r, bos_op_get_instance_info, NOBODY, &(struct bos_get_instance_info_in){S("salvage-tmp")}, &info, &arena, NULL) == BZ_NOENT)
			return;
		usleep(1000);
	}
	fail_msg("the repair does not end");
}

static void a_salvager_runs_once_and_goes_away(void **state)
{
	(void)state;
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	atomic_store(&r.repair_holds, true);
	assert_int_equal(mend(&r, "/usr/afs/bin/salvager /vicepab 536870912"), 0);
	assert_int_equal(mend(&r, "/usr/afs/bin/salvager /vicepa"), BZ_EXISTS);
	struct bos_get_status_out st = {};
	struct bos_enumerate_instance_out e = {};
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, RIG_ARENA);
	assert_int_equal(rig_call(&r, bos_op_get_status, NOBODY, &(struct bos_get_status_in){S("salvage-tmp")}, &st, &arena, NULL), 0);
	assert_string_equal(st.description.p, "running now");
	assert_int_equal(rig_call(&r, bos_op_enumerate_instance, NOBODY, &(struct bos_enumerate_instance_in){3}, &e, &arena, NULL), 0);
	assert_string_equal(e.name.p, "salvage-tmp");
	atomic_store(&r.repair_holds, false);
	wait_mended(&r);
	assert_int_equal(r.repaired_part, 27);
	assert_int_equal(r.repaired_volume, 536870912);
	struct bos_get_log_out o;
	CLEANUP(str) char *text = NULL;
	assert_int_equal(rig_call(&r, bos_op_get_log, ADMIN_CRYPT, &(struct bos_get_log_in){S("SalvageLog")}, &o, NULL, &text), 0);
	assert_non_null(strstr(text, "looked at\n"));
	assert_int_equal(mend(&r, "/usr/afs/bin/salvager -force"), 0);
	wait_mended(&r);
	assert_int_equal(r.repaired_part, -1);
	assert_int_equal(r.repaired_volume, 0);
}

static void only_the_salvagers_own_words_are_taken(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "salvager", "/bin/sh", "/usr/afs/bin/", "/usr/afs/bin/../../bin/sh", "/usr/afs/bin/salvager;reboot",
		"/usr/afs/bin/salvager /vicepa 1 2", "/usr/afs/bin/salvager /vicepa -1", "/usr/afs/bin/salvager /vicepzz 1", "/usr/afs/bin/salvager /vicep",
		"/usr/afs/bin/salvager /vicepa 4294967296", "/usr/afs/bin/salvager 5", "/usr/afs/bin/salvager -tmpdir /etc /vicepa",
		"/usr/afs/bin/salvager /vicepa $(reboot)", "/usr/afs/bin/salvager -parallel", "/usr/afs/bin/salvager /vicepa 0"};
	static const char *const good[] = {"/usr/afs/bin/salvager -force /vicepa", "/usr/afs/bin/dasalvager -force", "/usr/afs/bin/salvageserver -client /vicepa 7",
		"/usr/afs/bin/salvager /vicepiv 4294967295 -parallel 4 -orphans attach -salvagedirs"};
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (mend(&r, bad[i]) != BZ_ACCESS)
			fail_msg("taken: %s", bad[i]);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		if (mend(&r, good[i]) != 0)
			fail_msg("refused: %s", good[i]);
		wait_mended(&r);
	}
}

static void a_repair_ends_when_the_overseer_does(void **state)
{
	(void)state;
	CLEANUP(rig) struct rig r;
	rig_open(&r);
	atomic_store(&r.repair_holds, true);
	assert_int_equal(mend(&r, "/usr/afs/bin/salvager -force"), 0);
	bos_server_stop(r.bos); /* comes back */
	assert_int_equal(mend(&r, "/usr/afs/bin/salvager -force"), abort_of_bos(AFS_ECANCELLED));
}

/* --- the file --------------------------------------------------------------------------------------------------------- */

static void a_file_that_makes_no_sense_is_not_taken(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "{", "[]", "7", "{}", "{\"version\":2}", "{\"version\":1,\"users\":5}", "{\"version\":1,\"users\":[5]}",
		"{\"version\":1,\"users\":[\"a b\"]}", "{\"version\":1,\"users\":[\"\"]}", "{\"version\":1,\"stopped\":{}}", "{\"version\":1,\"restart\":[1,2,3,4]}",
		"{\"version\":1,\"restart\":[3,99,0,0,0]}", "{\"version\":1,\"restart\":[3,-1,0,0,0]}", "{\"version\":1,\"new_binaries\":\"x\"}",
		"{\"version\":1,\"version\":1}"};
	static const struct bos_instance one[] = {{.name = "fs", .type = "fs"}};
	struct bos_state st;
	bos_state_init(&st);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (bos_state_parse(bad[i], strlen(bad[i]), one, 1, &st) != AFS_ECORRUPT)
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(st.file_goal[0], BOS_RUNNING);
	static const char good[] = "{\"version\":1,\"stopped\":[\"fs\",\"gone\"],\"users\":[\"a\",\"b@c\"],\"restart\":[3,5,0,0,0],\"later\":true}";
	assert_ok(bos_state_parse(good, sizeof(good) - 1, one, 1, &st));
	assert_int_equal(st.file_goal[0], BOS_SHUTDOWN);
	assert_int_equal(st.user_count, 2);
	assert_int_equal(st.general.hour, 5);
	bos_state_fini(&st);
}

TEST_MAIN(T(one_function_says_who_may_do_what), T(every_call_follows_the_rule), T(numbers_that_are_out_of_range_end_lists),
	T(keys_are_numbers_and_checksums), T(stopping_is_for_good_and_shutting_down_for_now), T(goals_that_are_none_are_refused),
	T(a_restart_stops_and_starts_and_answers_after), T(a_start_that_fails_is_tried_again), T(superusers_are_added_kept_and_removed),
	T(names_that_could_be_lines_of_a_file_are_refused), T(a_change_that_cannot_be_kept_is_not_made), T(restart_times_are_judged_and_kept), T(the_next_time_is_reckoned_by_day_and_hour),
	T(the_general_restart_is_carried_out),
	T(logs_are_known_by_name_only), T(a_salvager_runs_once_and_goes_away), T(only_the_salvagers_own_words_are_taken),
	T(a_repair_ends_when_the_overseer_does), T(a_file_that_makes_no_sense_is_not_taken))
