/* SPDX-License-Identifier: BSD-2-Clause */
#include "webui/session.h"

#include "tests/lib/test.h"

#include <string.h>

struct web_identity {
	const char *name;
	int64_t expires;
};
static unsigned released;
static void release(void *ctx, struct web_identity *id) { (void)ctx, (void)id, released++; }
static const char *name(const struct web_identity *id) { return id->name; }
static int64_t expires(const struct web_identity *id) { return id->expires; }
static const struct web_ports ports = {.release = release, .name = name, .expires = expires};

static void a_session_ends_when_idle_and_when_its_life_is_over(void **state)
{
	(void)state;
	struct web_identity alice = {"alice", 0};
	struct sessions *s = sessions_new(&ports);
	struct session *x = sessions_begin(s, &alice, "127.0.0.1", SEC(1)), *y;
	char id[SESSION_ID_LEN + 1];
	memcpy(id, x->id, sizeof(id));
	assert_int_equal(strlen(id), SESSION_ID_LEN);
	sessions_let(s, x);
	mono_ns t = SEC(1);
	while (t + SESSION_IDLE_NS - SEC(1) < SEC(1) + SESSION_LIFE_NS) {
		t += SESSION_IDLE_NS - SEC(1);
		y = sessions_hold(s, id, t);
		assert_non_null(y);
		sessions_let(s, y);
	}
	assert_null(sessions_hold(s, id, SEC(1) + SESSION_LIFE_NS));
	x = sessions_begin(s, &alice, "127.0.0.1", SEC(1));
	memcpy(id, x->id, sizeof(id));
	sessions_let(s, x);
	assert_null(sessions_hold(s, id, SEC(1) + SESSION_IDLE_NS));
	sessions_free(s);
}

static void a_session_ends_with_its_token(void **state)
{
	(void)state;
	struct web_identity old = {"old", 1};
	struct sessions *s = sessions_new(&ports);
	struct session *x = sessions_begin(s, &old, "127.0.0.1", SEC(1));
	assert_null(sessions_hold(s, x->id, SEC(2)));
	sessions_let(s, x);
	sessions_free(s);
}

static void signing_out_everywhere_ends_that_persons_sessions_only(void **state)
{
	(void)state;
	struct web_identity alice = {"alice", 0}, bob = {"bob", 0};
	struct sessions *s = sessions_new(&ports);
	struct session *a = sessions_begin(s, &alice, "", 1), *b = sessions_begin(s, &alice, "", 1), *c = sessions_begin(s, &bob, "", 1);
	sessions_end_all(s, "alice");
	assert_false(sessions_alive(s, a, 2));
	assert_false(sessions_alive(s, b, 2));
	assert_true(sessions_alive(s, c, 2));
	released = 0;
	sessions_let(s, a);
	sessions_let(s, b);
	assert_int_equal(released, 2);
	sessions_let(s, c);
	assert_int_equal(released, 2);
	sessions_free(s);
	assert_int_equal(released, 3);
}

static void with_all_places_taken_the_one_idle_for_longest_goes(void **state)
{
	(void)state;
	struct web_identity alice = {"alice", 0};
	struct sessions *s = sessions_new(&ports);
	char first[SESSION_ID_LEN + 1];
	for (int i = 0; i <= SESSIONS_MAX; i++) {
		struct session *x = sessions_begin(s, &alice, "", SEC(1) + i);
		if (i == 0)
			memcpy(first, x->id, sizeof(first));
		sessions_let(s, x);
	}
	assert_null(sessions_hold(s, first, SEC(2)));
	assert_int_equal(sessions_count(s, SEC(2)), SESSIONS_MAX);
	sessions_free(s);
}

static void a_link_is_good_once_and_for_ten_minutes(void **state)
{
	(void)state;
	struct sessions *s = sessions_new(&ports);
	char link[SESSION_ID_LEN + 1];
	sessions_link(s, link, SEC(1));
	assert_false(sessions_link_use(s, "", SEC(1)));
	assert_true(sessions_link_use(s, link, SEC(2)));
	assert_false(sessions_link_use(s, link, SEC(2)));
	sessions_link(s, link, SEC(1));
	assert_false(sessions_link_use(s, link, SEC(1) + SESSION_LINK_NS));
	sessions_free(s);
}

static void attempts_are_limited_by_user_and_address(void **state)
{
	(void)state;
	struct sessions *s = sessions_new(&ports);
	for (int i = 0; i < 5; i++) {
		assert_true(sessions_may_try(s, "alice", "10.0.0.1", SEC(1)));
		sessions_failed(s, "alice", "10.0.0.1", SEC(1));
	}
	assert_false(sessions_may_try(s, "alice", "10.0.0.1", SEC(2)));
	assert_true(sessions_may_try(s, "alice", "10.0.0.2", SEC(2)));
	assert_true(sessions_may_try(s, "bob", "10.0.0.1", SEC(2)));
	assert_true(sessions_may_try(s, "alice", "10.0.0.1", SEC(61)));
	sessions_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_ends_when_idle_and_when_its_life_is_over),
		cmocka_unit_test(a_session_ends_with_its_token),
		cmocka_unit_test(signing_out_everywhere_ends_that_persons_sessions_only),
		cmocka_unit_test(with_all_places_taken_the_one_idle_for_longest_goes),
		cmocka_unit_test(a_link_is_good_once_and_for_ten_minutes),
		cmocka_unit_test(attempts_are_limited_by_user_and_address),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
