/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "cell/audit.h"
#include "cell/base/mem.h"
#include "cell/proto/pt.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct rpc_proc *proc(const char *name)
{
	for (unsigned i = 0; i < pt_iface.count; i++)
		if (strcmp(pt_iface.procs[i].name, name) == 0)
			return &pt_iface.procs[i];
	fail();
	return NULL;
}

static const struct rx_caller anonymous;
static const struct rx_caller alice = {.authenticated = true, .name = "alice", .instance = "admin", .cell = "A.TEST"};

static struct rpc_call call_of(const char *name, const struct rx_caller *caller)
{
	return (struct rpc_call){.iface = &pt_iface, .proc = proc(name), .caller = caller, .peer = {0x0a000001, 7001}};
}

/* Line `n` of a file as JSON, NULL when there is none. */
static json_t *line_of(const char *path, unsigned n)
{
	static char line[65536];
	FILE *f = fopen(path, "r");
	json_t *v = NULL;
	for (unsigned i = 0; f && fgets(line, sizeof(line), f); i++)
		if (i == n) {
			assert_non_null(strchr(line, '\n'));
			v = json_loads(line, 0, NULL);
			assert_non_null(v);
		}
	if (f)
		fclose(f);
	return v;
}

static const char *text(json_t *v, const char *key)
{
	const char *s = json_string_value(json_object_get(v, key));
	return s ? s : "(none)";
}

static void a_change_is_a_line_with_who_where_what_and_result(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/a", dir);
	struct audit *a;
	assert_ok(audit_open(&(struct audit_config){path, 1 << 20, 2}, &a));
	struct pt_add_to_group_in in = {.id = 7, .gid = -300};
	struct rpc_call call = call_of("AddToGroup", &alice), other = call_of("AddToGroup", &anonymous);
	audit_call(a, &call, &in, AFS_OK, 0, 1500000);
	audit_call(a, &other, &in, AFS_EACCESS, 267269, 1000);
	json_t *v = line_of(path, 0), *w = line_of(path, 1);
	assert_string_equal(text(v, "who"), "alice.admin@A.TEST");
	assert_string_equal(text(v, "from"), "10.0.0.1:7001");
	assert_string_equal(text(v, "service"), pt_iface.name);
	assert_string_equal(text(v, "call"), "AddToGroup");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(v, "args"), "gid")), -300);
	assert_string_equal(text(v, "result"), "OK");
	assert_int_equal(json_integer_value(json_object_get(v, "us")), 1500);
	assert_int_equal(strlen(text(v, "time")), strlen("2026-01-01T00:00:00.000000Z"));
	assert_string_equal(text(w, "who"), "anonymous");
	assert_string_equal(text(w, "result"), "ACCESS");
	assert_int_equal(json_integer_value(json_object_get(w, "code")), 267269);
	json_decref(v);
	json_decref(w);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	audit_close(a);
	test_scratch_free(dir);
}

static void a_call_that_only_reads_leaves_no_line(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/a", dir);
	struct audit *a;
	assert_ok(audit_open(&(struct audit_config){path, 1 << 20, 2}, &a));
	struct pt_get_cps_in in = {.id = 7};
	struct rpc_call call = call_of("GetCPS", &alice);
	audit_call(a, &call, &in, AFS_OK, 0, 1);
	assert_null(line_of(path, 0));
	audit_close(a);
	test_scratch_free(dir);
}

static void names_with_anything_in_them_stay_inside_their_line(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/a", dir);
	struct audit *a;
	assert_ok(audit_open(&(struct audit_config){path, 1 << 20, 2}, &a));
	struct rx_caller evil = {.authenticated = true, .name = "x\"},\n{\"who\":\"root", .cell = "\xff\x01"};
	struct pt_new_entry_in in = {.name = XDR_STR_OF("a\nb\"\\\x02\xfe")};
	struct rpc_call call = call_of("NewEntry", &evil);
	audit_call(a, &call, &in, AFS_OK, 0, 1);
	json_t *v = line_of(path, 0);
	assert_true(strncmp(text(v, "who"), "x", 1) == 0);
	json_decref(v);
	assert_null(line_of(path, 1));
	audit_close(a);
	test_scratch_free(dir);
}

static void files_are_put_aside_by_size_and_only_so_many_kept(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/a", dir);
	struct audit *a;
	assert_ok(audit_open(&(struct audit_config){path, 1000, 2}, &a));
	for (int i = 0; i < 60; i++)
		audit_local(a, "configuration", "user.create", "user somebody", AFS_OK);
	for (int i = 0; i < 3; i++) {
		CLEANUP(str) char *f = i ? mem_printf("%s.%d", path, i) : mem_strdup(path);
		struct stat st;
		assert_int_equal(stat(f, &st), 0);
		assert_in_range(st.st_size, 1, 1000);
	}
	CLEANUP(str) char *third = mem_printf("%s.3", path);
	assert_int_equal(access(third, F_OK), -1);
	audit_close(a);
	test_scratch_free(dir);
}

static void a_trail_goes_on_where_it_ended(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/a", dir);
	for (int i = 0; i < 2; i++) {
		struct audit *a;
		assert_ok(audit_open(&(struct audit_config){path, 1 << 20, 2}, &a));
		audit_local(a, "configuration", "x", "y", AFS_OK);
		audit_close(a);
	}
	json_t *v = line_of(path, 1);
	assert_string_equal(text(v, "object"), "y");
	json_decref(v);
	test_scratch_free(dir);
}

TEST_MAIN(T(a_change_is_a_line_with_who_where_what_and_result), T(a_call_that_only_reads_leaves_no_line),
	T(names_with_anything_in_them_stay_inside_their_line), T(files_are_put_aside_by_size_and_only_so_many_kept),
	T(a_trail_goes_on_where_it_ended))
