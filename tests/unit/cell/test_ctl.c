/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "cell/base/clk.h"
#include "cell/base/mem.h"
#include "cell/ctl.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static afs_err echo(void *ctx, struct ctl_request *rq, json_t *out)
{
	json_object_set_new(out, "text", json_string(ctl_str(rq, "text") ? ctl_str(rq, "text") : "none"));
	json_object_set_new(out, "n", json_integer(ctl_int(rq, "n", 42)));
	json_object_set_new(out, "b", json_boolean(ctl_bool(rq, "b")));
	json_object_set_new(out, "uid", json_integer(rq->uid));
	json_object_set_new(out, "ctx", json_string(ctx));
	return AFS_OK;
}
static afs_err refuse(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)ctx, (void)out;
	return ctl_refuse(rq, AFS_ENOENT, "no %s here", "volume");
}
static afs_err plain_error(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)ctx, (void)rq, (void)out;
	return AFS_EROFS;
}
static afs_err count(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)ctx;
	for (int i = 0; i < 3; i++)
		ctl_progress(rq, json_pack("{s:i}", "i", i));
	json_object_set_new(out, "done", json_true());
	return AFS_OK;
}
static const struct ctl_verb verbs[] = {{"echo", CTL_ANYONE, echo}, {"refuse", CTL_ANYONE, refuse},
	{"error", CTL_ANYONE, plain_error}, {"count", CTL_ANYONE, count}, {"owner", CTL_OWNER, echo}};

static struct ctl_server *serve(const char *path)
{
	struct ctl_server *s = ctl_server_new(path);
	assert_non_null(s);
	assert_ok(ctl_server_add(s, verbs, ARRAY_SIZE(verbs), (void *)(uintptr_t) "house"));
	assert_ok(ctl_server_start(s));
	return s;
}

static void a_verb_gets_its_arguments_and_who_asks(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/s", dir);
	struct ctl_server *s = serve(path);
	json_t *out;
	CLEANUP(str) char *text = NULL;
	assert_ok(ctl_ask(path, json_pack("{s:s, s:s, s:i, s:b}", "verb", "echo", "text", "a\nb", "n", 7, "b", 1), &out, &text, NULL, NULL));
	assert_string_equal(json_string_value(json_object_get(out, "text")), "a\nb");
	assert_int_equal(json_integer_value(json_object_get(out, "n")), 7);
	assert_true(json_is_true(json_object_get(out, "b")));
	assert_int_equal(json_integer_value(json_object_get(out, "uid")), getuid());
	assert_string_equal(json_string_value(json_object_get(out, "ctx")), "house");
	json_decref(out);
	ctl_server_free(s);
	assert_int_equal(access(path, F_OK), -1);
	test_scratch_free(dir);
}

static void an_error_comes_with_its_name_and_words(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/s", dir);
	struct ctl_server *s = serve(path);
	json_t *out;
	char *text = NULL;
	assert_err(ctl_ask(path, json_pack("{s:s}", "verb", "refuse"), &out, &text, NULL, NULL), AFS_ENOENT);
	assert_string_equal(text, "no volume here");
	mem_free(text);
	assert_err(ctl_ask(path, json_pack("{s:s}", "verb", "error"), &out, &text, NULL, NULL), AFS_EROFS);
	assert_string_equal(text, afs_err_text(AFS_EROFS));
	mem_free(text);
	assert_err(ctl_ask(path, json_pack("{s:s}", "verb", "bogus"), &out, &text, NULL, NULL), AFS_ENOTSUP);
	mem_free(text);
	assert_err(ctl_ask(path, json_object(), &out, &text, NULL, NULL), AFS_ENOTSUP);
	mem_free(text);
	ctl_server_free(s);
	test_scratch_free(dir);
}

static void add_up(void *ctx, const json_t *v) { *(int *)ctx += 1 + (int)json_integer_value(json_object_get(v, "i")); }

static void progress_comes_before_the_answer(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/s", dir);
	struct ctl_server *s = serve(path);
	json_t *out;
	int sum = 0;
	CLEANUP(str) char *text = NULL;
	assert_ok(ctl_ask(path, json_pack("{s:s}", "verb", "count"), &out, &text, add_up, &sum));
	assert_int_equal(sum, 1 + 2 + 3);
	json_decref(out);
	ctl_server_free(s);
	test_scratch_free(dir);
}

static void a_stranger_may_not_use_the_owners_verbs(void **state)
{
	(void)state;
	if (geteuid() != 0) /* becoming somebody else takes root */
		skip();
	char *dir = test_scratch();
	assert_int_equal(chmod(dir, 0755), 0);
	CLEANUP(str) char *path = mem_printf("%s/s", dir);
	struct ctl_server *s = serve(path);
	pid_t pid = fork();
	if (pid == 0) {
		json_t *out;
		char *text;
		if (setuid(65534) != 0)
			_exit(9);
		if (ctl_ask(path, json_pack("{s:s, s:i}", "verb", "owner", "uid", 0), &out, &text, NULL, NULL) != AFS_EACCESS)
			_exit(1);
		if (ctl_ask(path, json_pack("{s:s}", "verb", "echo"), &out, &text, NULL, NULL) != AFS_OK)
			_exit(2);
		_exit(json_integer_value(json_object_get(out, "uid")) == 65534 ? 0 : 3);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	ctl_server_free(s);
	test_scratch_free(dir);
}

/* Connects, says nothing, and gives the descriptor. */
static int mute(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return fd >= 0 && connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0 ? fd : -1;
}

static void a_stranger_who_says_nothing_keeps_nobody_else_from_being_heard(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	char *dir = test_scratch();
	assert_int_equal(chmod(dir, 0755), 0);
	CLEANUP(str) char *path = mem_printf("%s/s", dir);
	struct ctl_server *s = serve(path);
	int ready[2], end[2];
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(end), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char reply[256] = "", c = 0;
		int fd = -1;
		close(end[1]);
		if (setuid(65534) != 0)
			_exit(9);
		for (int i = 0; i < 300; i++)
			if ((fd = mute(path)) < 0)
				_exit(8);
		/* the last is one too many */
		if (recv(fd, reply, sizeof(reply) - 1, 0) <= 0 || !strstr(reply, "BUSY"))
			_exit(1);
		if (write(ready[1], &c, 1) != 1 || read(end[0], &c, 1) != 0)
			_exit(7);
		_exit(0);
	}
	char c;
	assert_int_equal(read(ready[0], &c, 1), 1);
	json_t *out;
	CLEANUP(str) char *text = NULL;
	mono_ns from = clk_mono();
	assert_ok(ctl_ask(path, json_pack("{s:s}", "verb", "echo"), &out, &text, NULL, NULL));
	json_decref(out);
	assert_true(clk_mono() - from < SEC(5));
	from = clk_mono();
	ctl_server_free(s);
	assert_true(clk_mono() - from < SEC(5));
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(end[i]);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	test_scratch_free(dir);
}

static void a_request_that_drips_is_dropped_in_time(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/s", dir);
	struct ctl_server *s = serve(path);
	int fd = mute(path);
	assert_true(fd >= 0);
	mono_ns from = clk_mono();
	while (send(fd, " ", 1, MSG_NOSIGNAL) == 1) {
		assert_true(clk_mono() - from < SEC(20));
		usleep(200000);
	}
	assert_true(clk_mono() - from > SEC(8));
	close(fd);
	ctl_server_free(s);
	test_scratch_free(dir);
}

static void nobody_there_is_told_with_what_to_do(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/s", dir);
	json_t *out;
	CLEANUP(str) char *text = NULL;
	assert_err(ctl_ask(path, json_pack("{s:s}", "verb", "echo"), &out, &text, NULL, NULL), AFS_ENOENT);
	assert_non_null(strstr(text, "afscell up"));
	test_scratch_free(dir);
}

static void a_dead_socket_is_replaced_and_a_living_one_is_not(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/s", dir);
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(fd);
	struct ctl_server *s = serve(path);
	struct ctl_server *second = ctl_server_new(path);
	assert_err(ctl_server_start(second), AFS_EADDRINUSE);
	ctl_server_free(second);
	json_t *out;
	CLEANUP(str) char *text = NULL;
	assert_ok(ctl_ask(path, json_pack("{s:s}", "verb", "echo"), &out, &text, NULL, NULL));
	json_decref(out);
	ctl_server_free(s);
	test_scratch_free(dir);
}

static void a_path_longer_than_a_socket_address_works(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *deep = mem_printf("%s/%0120d", dir, 1);
	assert_int_equal(mkdir(deep, 0700), 0);
	CLEANUP(str) char *path = mem_printf("%s/s", deep);
	struct ctl_server *s = serve(path);
	json_t *out;
	CLEANUP(str) char *text = NULL;
	assert_ok(ctl_ask(path, json_pack("{s:s}", "verb", "echo"), &out, &text, NULL, NULL));
	json_decref(out);
	ctl_server_free(s);
	test_scratch_free(dir);
}

/* Sends `text` as it is and gives what came back, NUL-terminated. */
static void raw(const char *path, const char *text, size_t n, char *reply, size_t size)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	size_t done = 0;
	while (done < n) {
		ssize_t k = send(fd, text + done, n - done, MSG_NOSIGNAL);
		if (k <= 0)
			break;
		done += (size_t)k;
	}
	shutdown(fd, SHUT_WR);
	size_t got = 0;
	ssize_t k;
	while (got < size - 1 && (k = recv(fd, reply + got, size - 1 - got, 0)) > 0)
		got += (size_t)k;
	reply[got] = '\0';
	close(fd);
}

static void nonsense_is_refused_and_the_server_lives_on(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/s", dir);
	struct ctl_server *s = serve(path);
	char reply[1024];
	raw(path, "nonsense\n", 9, reply, sizeof(reply));
	assert_non_null(strstr(reply, "not a JSON object"));
	raw(path, "[1]\n", 4, reply, sizeof(reply));
	assert_non_null(strstr(reply, "not a JSON object"));
	raw(path, "{\"verb\":7}\n", 11, reply, sizeof(reply));
	assert_non_null(strstr(reply, "NOTSUP"));
	raw(path, "{\"verb\":\"echo\"", 14, reply, sizeof(reply)); /* no end of line */
	assert_string_equal(reply, "");
	size_t big = CTL_LINE_MAX + 4096;
	char *blob = mem_alloc(big, 1);
	memset(blob, 'x', big);
	raw(path, blob, big, reply, sizeof(reply));
	mem_free(blob);
	assert_string_equal(reply, "");
	raw(path, "{\"verb\":\"echo\"}\n", 16, reply, sizeof(reply));
	assert_non_null(strstr(reply, "\"ok\""));
	ctl_server_free(s);
	test_scratch_free(dir);
}

static void *ask_many(void *path)
{
	for (int i = 0; i < 50; i++) {
		json_t *out = NULL;
		char *text = NULL;
		if (ctl_ask(path, json_pack("{s:s, s:i}", "verb", "echo", "n", i), &out, &text, NULL, NULL) != AFS_OK
			|| json_integer_value(json_object_get(out, "n")) != i)
			return path;
		json_decref(out);
	}
	return NULL;
}

static void many_may_ask_at_once(void **state)
{
	(void)state;
	char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/s", dir);
	struct ctl_server *s = serve(path);
	pthread_t t[40];
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, ask_many, path), 0);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		void *bad;
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	ctl_server_free(s);
	test_scratch_free(dir);
}

TEST_MAIN(T(a_verb_gets_its_arguments_and_who_asks), T(an_error_comes_with_its_name_and_words),
	T(progress_comes_before_the_answer), T(a_stranger_may_not_use_the_owners_verbs),
	T(a_stranger_who_says_nothing_keeps_nobody_else_from_being_heard), T(a_request_that_drips_is_dropped_in_time), T(nobody_there_is_told_with_what_to_do),
	T(a_dead_socket_is_replaced_and_a_living_one_is_not), T(a_path_longer_than_a_socket_address_works),
	T(nonsense_is_refused_and_the_server_lives_on), T(many_may_ask_at_once))
