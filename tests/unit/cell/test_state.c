/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "cell/state.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct scene {
	char *dir;
	struct conf *conf;
};

static struct conf *conf_in(const char *dir, const char *cell)
{
	CLEANUP(buf) struct buf text = {}, problems = {};
	struct conf *c = NULL;
	buf_printf(&text, "cell: %s\nstate: %s/state\nclient: {mount: none}\npartitions: {a: %s/vice}\n", cell, dir, dir);
	assert_ok(conf_parse(text.data, text.len, "t.yaml", &c, &problems));
	return c;
}

static int setup(void **state)
{
	struct scene *s = mem_new(struct scene);
	s->dir = test_scratch();
	s->conf = conf_in(s->dir, "a.test");
	*state = s;
	return 0;
}
static int teardown(void **state)
{
	struct scene *s = *state;
	conf_free(s->conf);
	test_scratch_free(s->dir);
	mem_free(s);
	return 0;
}

static bool there(const struct scene *s, const char *name)
{
	CLEANUP(str) char *path = mem_printf("%s/%s", s->dir, name);
	return access(path, F_OK) == 0;
}

static struct state *opened(const struct scene *s)
{
	struct state *st;
	struct state_holder h;
	CLEANUP(buf) struct buf why = {};
	afs_err err = state_open(s->conf, true, &st, &h, &why);
	if (err != AFS_OK)
		print_error("%s\n", why.data);
	assert_ok(err);
	return st;
}

static void a_first_start_that_is_not_kept_leaves_nothing(void **state)
{
	struct scene *s = *state;
	CLEANUP(buf) struct buf why = {};
	struct state *st = opened(s);
	assert_true(state_is_fresh(st));
	CLEANUP(str) char *out = mem_printf("%s/deep/er/vice", s->dir);
	assert_ok(state_mkdir(st, out, 0700, true, &why));
	CLEANUP(str) char *in = mem_printf("%s/state/keys", s->dir);
	assert_ok(state_mkdir(st, in, 0700, false, &why));
	assert_true(there(s, "state/keys") && there(s, "deep/er/vice"));
	state_close(st);
	assert_false(there(s, "state") || there(s, "deep"));
}

static void a_state_that_is_kept_is_found_again(void **state)
{
	struct scene *s = *state;
	CLEANUP(buf) struct buf why = {};
	struct state *st = opened(s);
	uint8_t a[16], b[16];
	assert_ok(state_uuid(st, a, &why));
	assert_ok(state_keep(st, &why));
	state_close(st);
	st = opened(s);
	assert_false(state_is_fresh(st));
	assert_ok(state_uuid(st, b, &why));
	assert_memory_equal(a, b, 16);
	assert_int_equal(a[6] >> 4, 4); /* RFC 4122, version 4 */
	state_close(st);
	assert_true(there(s, "state/version"));
}

static void a_second_process_is_told_who_holds_the_state(void **state)
{
	struct scene *s = *state;
	CLEANUP(buf) struct buf why = {};
	struct state *st = opened(s), *other;
	assert_ok(state_keep(st, &why));
	struct state_holder h = {};
	assert_err(state_open(s->conf, true, &other, &h, &why), AFS_EBUSY);
	assert_int_equal(h.pid, getpid());
	assert_string_equal(h.cell, "a.test");
	assert_non_null(strstr(h.socket, "/state/run/control"));
	assert_non_null(strstr(why.data, "is in use by process"));
	state_close(st);
	assert_true(there(s, "state/version")); /* the loser removed nothing */
}

static void another_cells_state_is_refused(void **state)
{
	struct scene *s = *state;
	CLEANUP(buf) struct buf why = {};
	struct state *st = opened(s);
	assert_ok(state_keep(st, &why));
	state_close(st);
	struct conf *other = conf_in(s->dir, "b.test");
	struct state_holder h;
	assert_err(state_open(other, true, &st, &h, &why), AFS_EVERSION);
	assert_non_null(strstr(why.data, "holds the cell a.test, and the configuration is for b.test"));
	conf_free(other);
}

static void another_versions_state_is_refused_and_untouched(void **state)
{
	struct scene *s = *state;
	CLEANUP(buf) struct buf why = {};
	struct state *st = opened(s);
	assert_ok(state_keep(st, &why));
	state_close(st);
	CLEANUP(str) char *path = mem_printf("%s/state/version", s->dir);
	static const char *const texts[] = {"afscell state 99\ncell a.test\n", "nonsense\n", ""};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		FILE *f = fopen(path, "w");
		fputs(texts[i], f);
		fclose(f);
		struct state_holder h;
		why.len = 0;
		assert_err(state_open(s->conf, true, &st, &h, &why), AFS_EVERSION);
		assert_true(there(s, "state/version"));
	}
}

static void a_directory_with_other_things_in_it_is_refused(void **state)
{
	struct scene *s = *state;
	CLEANUP(buf) struct buf why = {};
	CLEANUP(str) char *dir = mem_printf("%s/state", s->dir), *mine = mem_printf("%s/state/thesis.tex", s->dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	fclose(fopen(mine, "w"));
	struct state *st;
	struct state_holder h;
	assert_err(state_open(s->conf, true, &st, &h, &why), AFS_ENOTEMPTY);
	assert_true(there(s, "state/thesis.tex"));
}

static void a_start_that_was_killed_is_begun_anew(void **state)
{
	struct scene *s = *state;
	CLEANUP(str) char *in = mem_printf("%s/state/realm", s->dir), *out = mem_printf("%s/vice", s->dir);
	pid_t pid = fork();
	if (pid == 0) { /* a first start that dies at once */
		struct state *st;
		struct state_holder h;
		struct buf why = {};
		bool ok = state_open(s->conf, true, &st, &h, &why) == AFS_OK && state_mkdir(st, in, 0700, false, &why) == AFS_OK
			  && state_mkdir(st, out, 0700, true, &why) == AFS_OK;
		_exit(ok ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(there(s, "state/realm") && there(s, "vice"));
	struct state *st = opened(s);
	assert_true(state_is_fresh(st));
	assert_false(there(s, "state/realm") || there(s, "vice"));
	state_close(st);
	assert_false(there(s, "state"));
}

static void erasing_leaves_nothing_that_was_ours_and_all_that_was_not(void **state)
{
	struct scene *s = *state;
	CLEANUP(buf) struct buf why = {};
	/* A partition that was there before, with a file of someone else. */
	CLEANUP(str) char *vice = mem_printf("%s/vice", s->dir), *theirs = mem_printf("%s/vice/theirs", s->dir);
	CLEANUP(str) char *vol = mem_printf("%s/vice/vol/1", s->dir);
	assert_int_equal(mkdir(vice, 0700), 0);
	fclose(fopen(theirs, "w"));
	struct state *st = opened(s);
	assert_ok(state_mkdir(st, vice, 0700, true, &why));
	assert_ok(state_mkdir(st, vol, 0700, false, &why));
	assert_ok(state_keep(st, &why));
	assert_ok(state_erase(st, s->conf, &why));
	assert_false(there(s, "state") || there(s, "vice/vol"));
	assert_true(there(s, "vice/theirs"));
}

static void removing_a_tree_follows_no_links(void **state)
{
	struct scene *s = *state;
	CLEANUP(buf) struct buf why = {};
	CLEANUP(str) char *tree = mem_printf("%s/tree", s->dir), *link = mem_printf("%s/tree/link", s->dir);
	CLEANUP(str) char *keep = mem_printf("%s/keep", s->dir), *file = mem_printf("%s/keep/file", s->dir);
	assert_int_equal(mkdir(tree, 0700) | mkdir(keep, 0700), 0);
	fclose(fopen(file, "w"));
	assert_int_equal(symlink(keep, link), 0);
	assert_ok(state_remove_tree(tree, &why));
	assert_false(there(s, "tree"));
	assert_true(there(s, "keep/file"));
	assert_ok(state_remove_tree(tree, &why)); /* nothing there is fine */
}

static void a_missing_state_is_not_made_when_only_asked_for(void **state)
{
	struct scene *s = *state;
	CLEANUP(buf) struct buf why = {};
	struct state *st;
	struct state_holder h;
	assert_err(state_open(s->conf, false, &st, &h, &why), AFS_ENOENT);
	assert_false(there(s, "state"));
}

#define S(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
TEST_MAIN(S(a_first_start_that_is_not_kept_leaves_nothing), S(a_state_that_is_kept_is_found_again),
	S(a_second_process_is_told_who_holds_the_state), S(another_cells_state_is_refused),
	S(another_versions_state_is_refused_and_untouched), S(a_directory_with_other_things_in_it_is_refused),
	S(a_start_that_was_killed_is_begun_anew), S(erasing_leaves_nothing_that_was_ours_and_all_that_was_not),
	S(removing_a_tree_follows_no_links), S(a_missing_state_is_not_made_when_only_asked_for))
