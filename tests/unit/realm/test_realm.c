/* SPDX-License-Identifier: BSD-2-Clause
 * A realm from nothing to a token that our servers read, with the real krb5kdc. */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "cell/base/rand.h"
#include "cell/keys/keys.h"
#include "cell/realm/realm.h"
#include "rx/sec/rxkad.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A scratch folder, a realm in it, its KDC, and everything's paths. */
struct place {
	char *dir, *realm_dir, *keytab, *ccache;
	uint16_t port;
	struct realm *realm;
	struct realm_kdc *kdc;
	struct buf why;
};

/* A loopback port that nobody has at this moment, for both protocols. */
static uint16_t free_port(void)
{
	for (int i = 0; i < 100; i++) {
		struct sockaddr_in a = {
			.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		socklen_t len = sizeof(a);
		CLEANUP(fd) int tcp = socket(AF_INET, SOCK_STREAM, 0);
		CLEANUP(fd) int udp = socket(AF_INET, SOCK_DGRAM, 0);
		if (bind(tcp, (struct sockaddr *)&a, len) ||
			getsockname(tcp, (struct sockaddr *)&a, &len))
			continue;
		if (bind(udp, (struct sockaddr *)&a, len) == 0)
			return ntohs(a.sin_port);
	}
	fail_msg("no free port");
	return 0;
}

static void place_init(struct place *p)
{
	*p = (struct place){.dir = test_scratch(), .port = free_port()};
	p->realm_dir = mem_printf("%s/realm", p->dir);
	p->keytab = mem_printf("%s/afs.keytab", p->dir);
	p->ccache = mem_printf("FILE:%s/cc", p->dir);
}

static struct realm_config config_of(const struct place *p)
{
	return (struct realm_config){.dir = p->realm_dir,
		.realm = "UNIT.TEST",
		.cell = "unit.test",
		.port = p->port,
		.keytab = p->keytab};
}

static afs_err place_open(struct place *p, bool *made)
{
	struct realm_config c = config_of(p);
	buf_fini(&p->why);
	return realm_open(&c, &p->realm, made, &p->why);
}

static void place_close(struct place *p)
{
	realm_kdc_stop(p->kdc);
	realm_close(p->realm);
	p->kdc = NULL;
	p->realm = NULL;
}

static void place_cleanup(struct place *p)
{
	place_close(p);
	buf_fini(&p->why);
	test_scratch_free(p->dir);
	mem_free(p->realm_dir);
	mem_free(p->keytab);
	mem_free(p->ccache);
}

static void place_up(struct place *p)
{
	bool made;
	place_init(p);
	assert_ok(place_open(p, &made));
	assert_true(made);
	assert_ok(realm_kdc_start(p->realm, &p->kdc, &p->why));
}

static afs_err login(struct place *p, const char *who, const char *password)
{
	struct keys_login l = {.principal = who,
		.password = password,
		.krb5_conf = realm_krb5_conf(p->realm),
		.ccache = p->ccache};
	buf_fini(&p->why);
	return keys_login(&l, &p->why);
}

static afs_err aklog(struct place *p, struct keys_token *out)
{
	struct keys_aklog want = {
		.cell = "unit.test", .krb5_conf = realm_krb5_conf(p->realm), .ccache = p->ccache};
	buf_fini(&p->why);
	return keys_aklog(&want, out, &p->why);
}

static struct keys *open_keys(struct place *p)
{
	struct keys *k = NULL;
	struct keys_config c = {.cell = "unit.test", .keytab = p->keytab};
	assert_ok(keys_open(&c, &k, &p->why));
	return k;
}

/* --- the realm ----------------------------------------------------------------------------- */

static void a_password_becomes_a_token_that_the_server_reads(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	mono_ns began = clk_mono();
	place_up(&p);
	mono_ns took = clk_mono() - began;
	print_message("# realm and KDC from nothing in %lld ms\n", (long long)(took / 1000000));
	assert_true(took < SEC(2));

	assert_ok(realm_user_add(p.realm, "joe", "correct horse", NULL, &p.why));
	assert_ok(realm_user_add(p.realm, "joe/admin", "battery staple", NULL, &p.why));
	CLEANUP(keys) struct keys *k = open_keys(&p);
	static const struct {
		const char *who, *password, *name, *instance, *afs;
	} rows[] = {{"joe", "correct horse", "joe", "", "joe"},
		{"joe/admin", "battery staple", "joe", "admin", "joe.admin"}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(keys_token) struct keys_token token = {};
		struct rxkad_ticket t;
		wall_ns now = clk_wall();
		assert_ok(login(&p, rows[i].who, rows[i].password));
		assert_ok(aklog(&p, &token));
		assert_int_equal(token.kad.kvno, 256);
		assert_string_equal(token.name, rows[i].name);
		assert_string_equal(token.instance, rows[i].instance);
		assert_string_equal(token.realm, "UNIT.TEST");
		assert_true(token.kad.ticket_len < 1200); /* a RESPONSE fits one small datagram */

		assert_ok(
			keys_read_ticket(k, 256, token.kad.ticket, token.kad.ticket_len, now, &t));
		assert_memory_equal(t.session_key, token.kad.session_key, 8);
		assert_string_equal(t.name, rows[i].name);
		assert_string_equal(t.instance, rows[i].instance);
		assert_string_equal(t.cell, "UNIT.TEST");
		assert_true(t.begins == token.kad.begins && t.expires == token.kad.expires);
		assert_true(t.expires - now > SEC(23 * 3600) && t.expires - now <= SEC(25 * 3600));

		const struct keys_realms realms = {.cell = "unit.test"};
		struct rx_caller caller = {.authenticated = true};
		struct keys_name name;
		memcpy(caller.name, t.name, RX_NAME_MAX);
		memcpy(caller.instance, t.instance, RX_NAME_MAX);
		memcpy(caller.cell, t.cell, RX_NAME_MAX);
		keys_afs_name(&realms, &caller, &name);
		assert_string_equal(name.text, rows[i].afs);
		assert_true(name.local && !name.localauth);

		assert_err(keys_read_ticket(k, 256, token.kad.ticket, token.kad.ticket_len,
				   t.expires + SEC(1), &t),
			AFS_EEXPIRED);
		for (size_t cut = 0; cut < token.kad.ticket_len; cut++)
			assert_err(keys_read_ticket(k, 256, token.kad.ticket, cut, now, &t),
				AFS_EBADTICKET);
	}
}

static uint32_t random32(void *ctx)
{
	(void)ctx;
	return rand_u32();
}

/* The whole of rxkad between a user's token and a server with the keytab. */
static void a_users_token_opens_a_connection(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	CLEANUP(keys_token) struct keys_token token = {};
	place_up(&p);
	assert_ok(realm_user_add(p.realm, "joe", "pw", NULL, &p.why));
	assert_ok(login(&p, "joe", "pw"));
	assert_ok(aklog(&p, &token));
	CLEANUP(keys) struct keys *k = open_keys(&p);

	struct rxkad_server server = {
		.read_ticket = keys_read_ticket, .ctx = k, .random = random32};
	struct rx_sec *c = rxkad_client_new(&token.kad, RX_LEVEL_CRYPT),
		      *s = rxkad_accept(&server, 2);
	struct rx_conn_id id = {.epoch = 1, .cid = 4, .index = 2, .call_numbers = {1}};
	struct rx_caller who;
	uint8_t ch[16], r[RX_RESPONSE_MAX];
	size_t n, len;
	c->ops->bind(c, &id);
	s->ops->bind(s, &id);
	assert_ok(s->ops->challenge(s, ch, sizeof(ch), &n));
	assert_ok(c->ops->respond(c, &id, ch, n, r, sizeof(r), &len));
	r[len - 1] ^= 1; /* in the ticket */
	assert_err(s->ops->accept(s, &id, r, len, clk_wall(), &who), AFS_EBADTICKET);
	r[len - 1] ^= 1;
	r[20] ^= 1; /* in the sealed words */
	assert_err(s->ops->accept(s, &id, r, len, clk_wall(), &who), AFS_ESEALED);
	r[20] ^= 1;
	assert_err(s->ops->accept(s, &id, r, len, token.kad.expires + SEC(1), &who), AFS_EEXPIRED);
	assert_ok(s->ops->accept(s, &id, r, len, clk_wall(), &who));
	assert_string_equal(who.name, "joe");
	assert_string_equal(who.cell, "UNIT.TEST");
	assert_int_equal(who.level, RX_LEVEL_CRYPT);
	assert_true(who.expires == token.kad.expires);
	rx_sec_free(c);
	rx_sec_free(s);
}

static void wrong_passwords_and_unknown_names_are_told_apart(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	CLEANUP(keys_token) struct keys_token token = {};
	place_up(&p);
	assert_ok(realm_user_add(p.realm, "joe", "right", NULL, &p.why));
	assert_err(aklog(&p, &token), AFS_ENOTICKETS);
	assert_err(login(&p, "joe", "wrong"), AFS_EBADPASSWORD);
	assert_non_null(p.why.data);
	assert_err(login(&p, "jim", "right"), AFS_ENOENT);
	assert_non_null(strstr(p.why.data, "jim"));
	assert_ok(login(&p, "joe", "right"));

	struct keys_aklog other = {
		.cell = "other.test", .krb5_conf = realm_krb5_conf(p.realm), .ccache = p.ccache};
	buf_fini(&p.why);
	assert_err(keys_aklog(&other, &token, &p.why), AFS_ENOENT);
	assert_non_null(strstr(p.why.data, "afs/other.test"));

	realm_kdc_stop(p.kdc);
	p.kdc = NULL;
	assert_err(login(&p, "joe", "right"), AFS_ENOKDC);
	assert_err(aklog(&p, &token), AFS_ENOKDC);
}

static void a_second_open_changes_nothing(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	bool made;
	struct stat before, after, conf_before, conf_after;
	place_init(&p);
	assert_ok(place_open(&p, &made));
	assert_ok(realm_user_add(p.realm, "joe", "pw", NULL, &p.why));
	assert_int_equal(stat(p.keytab, &before), 0);
	assert_int_equal(before.st_mode & 07777, 0600);
	assert_int_equal(stat(realm_kdc_conf(p.realm), &conf_before), 0);
	place_close(&p);

	mono_ns began = clk_mono();
	assert_ok(place_open(&p, &made));
	assert_true(clk_mono() - began < MSEC(500));
	assert_false(made);
	assert_true(realm_user_exists(p.realm, "joe"));
	assert_ok(realm_user_check(p.realm, "joe", "pw", &p.why));
	assert_int_equal(stat(p.keytab, &after), 0);
	assert_int_equal(stat(realm_kdc_conf(p.realm), &conf_after), 0);
	assert_true(before.st_ino == after.st_ino);
	assert_true(conf_before.st_ino == conf_after.st_ino);

	/* a keytab that is gone or of another key is written again */
	place_close(&p);
	unlink(p.keytab);
	assert_ok(place_open(&p, &made));
	CLEANUP(keys) struct keys *k = open_keys(&p);
	assert_int_equal(keys_list(k, NULL, 0), 1);
}

static void a_half_made_realm_is_made_anew_and_a_damaged_one_refused(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	CLEANUP(str) char *stash = NULL, *principal = NULL;
	bool made;
	place_init(&p);
	stash = mem_printf("%s/stash", p.realm_dir);
	principal = mem_printf("%s/principal", p.realm_dir);
	assert_ok(place_open(&p, &made));
	place_close(&p);
	assert_int_equal(unlink(stash), 0); /* as if the last step had not been reached */
	assert_ok(place_open(&p, &made));
	assert_true(made);
	assert_ok(realm_user_add(p.realm, "joe", "pw", NULL, &p.why));
	place_close(&p);

	struct realm_config c = config_of(&p);
	c.realm = "ANOTHER.TEST";
	buf_fini(&p.why);
	assert_err(realm_open(&c, &p.realm, &made, &p.why), AFS_EVERSION);
	assert_non_null(strstr(p.why.data, "UNIT.TEST"));
	assert_ok(place_open(&p, &made)); /* and it is as it was */
	assert_true(realm_user_exists(p.realm, "joe"));
	place_close(&p);

	FILE *f = fopen(stash, "r+"); /* another master key */
	assert_non_null(f);
	assert_int_equal(fseek(f, -10, SEEK_END), 0);
	assert_int_equal(fputc(0x5a, f), 0x5a);
	fclose(f);
	assert_err(place_open(&p, &made), AFS_ECORRUPT);
	assert_int_equal(unlink(principal), 0);
	assert_err(place_open(&p, &made), AFS_ECORRUPT);
	assert_non_null(strstr(p.why.data, principal));
	assert_int_equal(truncate(stash, 1), 0);
	assert_err(place_open(&p, &made), AFS_ECORRUPT);
}

/* Each of our allocations fails once; what was begun is taken up by the next attempt. */
static void a_realm_survives_memory_that_runs_out(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	bool made;
	place_init(&p);
	afs_err err = AFS_ENOMEM;
	long n = 0;
	for (; err; n++) {
		assert_true(n < 200);
		const struct realm_config c = config_of(&p);
		mem_fail_after(n);
		err = realm_open(&c, &p.realm, &made, NULL);
		mem_fail_after(-1);
		assert_int_equal(err == AFS_OK, p.realm != NULL);
		assert_true(err == AFS_OK || err == AFS_ENOMEM);
	}
	assert_true(n > 10);
	err = AFS_ENOMEM;
	for (n = 0; err; n++) {
		mem_fail_after(n);
		err = realm_kdc_start(p.realm, &p.kdc, NULL);
		mem_fail_after(-1);
		assert_int_equal(err == AFS_OK, p.kdc != NULL);
		assert_true(err == AFS_OK || err == AFS_ENOMEM);
	}
	assert_true(n > 3);
	assert_ok(realm_user_add(p.realm, "joe", "pw", NULL, &p.why));
	assert_ok(login(&p, "joe", "pw"));
}

static void users_are_added_changed_listed_and_deleted(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	bool made;
	char random[REALM_PASSWORD_LEN + 1] = "", again[REALM_PASSWORD_LEN + 1] = "";
	place_init(&p);
	assert_ok(place_open(&p, &made));
	assert_ok(realm_user_add(p.realm, "joe", NULL, random, &p.why));
	assert_int_equal(strlen(random), REALM_PASSWORD_LEN);
	assert_ok(realm_user_check(p.realm, "joe", random, &p.why));
	assert_err(realm_user_check(p.realm, "joe", "else", &p.why), AFS_EBADPASSWORD);
	assert_err(realm_user_check(p.realm, "jim", "else", &p.why), AFS_ENOENT);
	assert_err(realm_user_add(p.realm, "joe", "x", NULL, &p.why), AFS_EEXIST);
	assert_err(realm_user_add(p.realm, "jim", "", NULL, &p.why), AFS_EINVAL);
	assert_ok(realm_user_password(p.realm, "joe", "new", NULL, &p.why));
	assert_ok(realm_user_check(p.realm, "joe", "new", &p.why));
	assert_err(realm_user_check(p.realm, "joe", random, &p.why), AFS_EBADPASSWORD);
	assert_ok(realm_user_password(p.realm, "joe", NULL, again, &p.why));
	assert_string_not_equal(again, random);
	assert_err(realm_user_password(p.realm, "jim", "x", NULL, &p.why), AFS_ENOENT);
	assert_ok(realm_user_add(p.realm, "ann/admin", "x", NULL, &p.why));

	static const char *const bad[] = {"", "/", "joe/", "/admin", "a/b/c", "a.b", "a@B", "a:b",
		"a b", "a\n", "a\\b", "*", "\xc3\xa4",
		"1234567890123456789012345678901234567890123456789012345678901234"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_err(realm_user_add(p.realm, bad[i], "x", NULL, &p.why), AFS_EBADNAME);
		assert_false(realm_user_exists(p.realm, bad[i]));
	}

	struct realm_user *users;
	size_t n;
	assert_ok(realm_users(p.realm, &users, &n, &p.why));
	bool joe = false, ann = false, afs = false;
	for (size_t i = 0; i < n; i++) {
		assert_true(i == 0 || strcmp(users[i - 1].name, users[i].name) < 0);
		joe |= strcmp(users[i].name, "joe") == 0 && !users[i].service &&
		       !users[i].disabled && clk_wall() - users[i].password_changed < SEC(60);
		ann |= strcmp(users[i].name, "ann/admin") == 0 && !users[i].service;
		afs |= strcmp(users[i].name, "afs/unit.test") == 0 && users[i].service;
		assert_true(users[i].service || strcmp(users[i].name, "joe") == 0 ||
			    strcmp(users[i].name, "ann/admin") == 0);
	}
	assert_true(joe && ann && afs);
	realm_users_free(users, n);

	assert_ok(realm_user_delete(p.realm, "joe", &p.why));
	assert_false(realm_user_exists(p.realm, "joe"));
	assert_err(realm_user_delete(p.realm, "joe", &p.why), AFS_ENOENT);
	static const char *const own[] = {"afs/unit.test", "krbtgt/UNIT.TEST", "K/M"};
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		assert_err(realm_user_delete(p.realm, own[i], &p.why), AFS_EPERM);
		assert_err(realm_user_password(p.realm, own[i], "x", NULL, &p.why), AFS_EPERM);
		assert_err(realm_user_add(p.realm, own[i], "x", NULL, &p.why), AFS_EPERM);
	}
}

static void two_processes_change_one_realm(void **state)
{
	(void)state;
	enum { EACH = 8 };
	CLEANUP(place) struct place p;
	bool made;
	int status;
	char who[16];
	place_init(&p);
	assert_ok(place_open(&p, &made));
	pid_t pid = fork();
	if (pid == 0) {
		struct realm_config c = config_of(&p);
		struct realm *other;
		afs_err err = realm_open(&c, &other, &made, NULL);
		for (int i = 0; i < EACH && !err; i++) {
			snprintf(who, sizeof(who), "child%d", i);
			err = realm_user_add(other, who, "pw", NULL, NULL);
		}
		_exit(err != AFS_OK);
	}
	for (int i = 0; i < EACH; i++) {
		snprintf(who, sizeof(who), "parent%d", i);
		assert_ok(realm_user_add(p.realm, who, "pw", NULL, &p.why));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2 * EACH; i++) {
		snprintf(who, sizeof(who), "%s%d", i % 2 ? "child" : "parent", i / 2);
		assert_ok(realm_user_check(p.realm, who, "pw", &p.why));
	}
}

static void expired_tickets_are_told_from_none(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	CLEANUP(keys_token) struct keys_token token = {};
	bool made;
	place_init(&p);
	struct realm_config c = config_of(&p);
	c.ticket_life_s = 1;
	assert_ok(realm_open(&c, &p.realm, &made, &p.why));
	assert_ok(realm_kdc_start(p.realm, &p.kdc, &p.why));
	assert_ok(realm_user_add(p.realm, "joe", "pw", NULL, &p.why));
	assert_ok(login(&p, "joe", "pw"));
	usleep(2100000);
	assert_err(aklog(&p, &token), AFS_EEXPIRED);
	assert_non_null(strstr(p.why.data, "kinit"));
}

static void a_new_service_key_leaves_old_tickets_readable(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	CLEANUP(keys_token) struct keys_token old = {}, fresh = {};
	struct rxkad_ticket t;
	struct keys_entry list[4];
	place_up(&p);
	CLEANUP(keys) struct keys *k = open_keys(&p);
	assert_ok(realm_user_add(p.realm, "joe", "pw", NULL, &p.why));
	assert_ok(login(&p, "joe", "pw"));
	assert_ok(aklog(&p, &old));
	assert_ok(realm_rekey(p.realm, &p.why));
	assert_ok(login(&p, "joe", "pw")); /* a new cache: the old ticket is not taken from it */
	assert_ok(aklog(&p, &fresh));
	assert_err(keys_read_ticket(k, 256, fresh.kad.ticket, fresh.kad.ticket_len, clk_wall(), &t),
		AFS_EUNKNOWNKEY);
	assert_ok(keys_reload(k, &p.why));
	assert_int_equal(keys_list(k, list, 4), 2);
	assert_true(list[0].kvno == list[1].kvno + 1);
	assert_ok(keys_read_ticket(k, 256, fresh.kad.ticket, fresh.kad.ticket_len, clk_wall(), &t));
	assert_ok(keys_read_ticket(k, 256, old.kad.ticket, old.kad.ticket_len, clk_wall(), &t));
}

static void a_password_is_changed_while_the_kdc_runs(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	place_up(&p);
	assert_ok(realm_user_add(p.realm, "joe", "one", NULL, &p.why));
	assert_ok(login(&p, "joe", "one"));
	assert_ok(realm_user_password(p.realm, "joe", "two", NULL, &p.why));
	assert_err(login(&p, "joe", "one"), AFS_EBADPASSWORD);
	assert_ok(login(&p, "joe", "two"));
	assert_ok(realm_user_delete(p.realm, "joe", &p.why));
	assert_err(login(&p, "joe", "two"), AFS_ENOENT);
}

static void configuration_that_cannot_be_is_refused(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	bool made;
	place_init(&p);
	for (int i = 0; i < 9; i++) {
		struct realm_config c = config_of(&p);
		switch (i) {
		case 0:
			c.realm = "";
			break;
		case 1:
			c.realm = "A B";
			break;
		case 2:
			c.realm = "A\n[x]";
			break;
		case 3:
			c.cell = "a}b";
			break;
		case 4:
			c.dir = "relative";
			break;
		case 5:
			c.listen = "localhost";
			break;
		case 6:
			c.ticket_life_s = 31 * 86400;
			break;
		case 7:
			c.keytab = "kt";
			break;
		case 8:
			c.dir = "/nonexistent/realm";
			break;
		}
		buf_fini(&p.why);
		assert_err(
			realm_open(&c, &p.realm, &made, &p.why), i == 8 ? AFS_ENOENT : AFS_ECONFIG);
		assert_null(p.realm);
		assert_true(p.why.len > 10);
	}
	assert_int_equal(access(p.realm_dir, F_OK), -1);
}

/* --- the KDC ------------------------------------------------------------------------------- */

static bool wait_for(
	struct realm_kdc *kdc, enum realm_kdc_state state, unsigned restarts, mono_ns most)
{
	mono_ns until = clk_mono() + most;
	struct realm_kdc_status st;
	do {
		realm_kdc_status(kdc, &st);
		if (st.state == state && st.restarts == restarts)
			return true;
		usleep(2000);
	} while (clk_mono() < until);
	return false;
}

static void a_kdc_that_dies_is_started_again(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	struct realm_kdc_status st;
	place_up(&p);
	assert_ok(realm_user_add(p.realm, "joe", "pw", NULL, &p.why));
	realm_kdc_status(p.kdc, &st);
	assert_int_equal(st.state, REALM_KDC_RUNNING);
	assert_int_equal(st.restarts, 0);
	pid_t first = st.pid;
	assert_int_equal(kill(first, SIGKILL), 0);
	assert_true(wait_for(p.kdc, REALM_KDC_RUNNING, 1, SEC(5)));
	realm_kdc_status(p.kdc, &st);
	assert_int_not_equal(st.pid, first);
	assert_true(WIFSIGNALED(st.last_exit) && WTERMSIG(st.last_exit) == SIGKILL);
	afs_err err = AFS_ENOKDC;
	for (int i = 0; i < 100 && err == AFS_ENOKDC; i++, usleep(20000))
		err = login(&p, "joe", "pw");
	assert_ok(err);

	pid_t second = st.pid;
	realm_kdc_stop(p.kdc);
	p.kdc = NULL;
	assert_int_equal(kill(second, 0), -1); /* stopped and buried */
}

static void a_port_in_use_is_said_plainly(void **state)
{
	(void)state;
	for (int type = 0; type < 2; type++) {
		CLEANUP(place) struct place p;
		bool made;
		char port[16];
		place_init(&p);
		CLEANUP(fd) int fd = socket(AF_INET, type ? SOCK_STREAM : SOCK_DGRAM, 0);
		struct sockaddr_in a = {.sin_family = AF_INET,
			.sin_port = htons(p.port),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
		if (type)
			assert_int_equal(listen(fd, 1), 0);
		assert_ok(place_open(&p, &made));
		assert_err(realm_kdc_start(p.realm, &p.kdc, &p.why), AFS_EADDRINUSE);
		assert_null(p.kdc);
		snprintf(port, sizeof(port), "port %u", p.port);
		assert_non_null(strstr(p.why.data, port));
		assert_non_null(strstr(p.why.data, type ? "TCP" : "UDP"));
	}
}

static void a_kdc_that_cannot_run_is_reported_with_its_words(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	CLEANUP(str) char *stash = NULL;
	bool made;
	place_init(&p);
	stash = mem_printf("%s/stash", p.realm_dir);
	assert_ok(place_open(&p, &made));
	assert_int_equal(unlink(stash), 0);
	assert_err(realm_kdc_start(p.realm, &p.kdc, &p.why), AFS_EIO);
	assert_null(p.kdc);
	assert_non_null(strstr(p.why.data, "krb5kdc"));
	assert_non_null(strstr(p.why.data, "UNIT.TEST"));
}

/* A process that starts a KDC and is killed leaves none behind. */
static void the_kdc_dies_with_its_process(void **state)
{
	(void)state;
	CLEANUP(place) struct place p;
	bool made;
	int pipe_fd[2];
	pid_t kdc = 0;
	place_init(&p);
	assert_int_equal(pipe(pipe_fd), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct realm_kdc_status st = {};
		if (place_open(&p, &made) == AFS_OK &&
			realm_kdc_start(p.realm, &p.kdc, &p.why) == AFS_OK)
			realm_kdc_status(p.kdc, &st);
		if (write(pipe_fd[1], &st.pid, sizeof(st.pid)) < 0)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(pipe_fd[0], &kdc, sizeof(kdc)), sizeof(kdc));
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	assert_true(kdc > 0);
	assert_int_equal(kill(kdc, 0), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* nobody here can wait for it; it is gone, or a zombie that init has not taken yet */
	char stat_path[64], line[256] = "";
	snprintf(stat_path, sizeof(stat_path), "/proc/%d/stat", (int)kdc);
	bool gone = false;
	for (int i = 0; i < 500 && !gone; i++, usleep(2000)) {
		FILE *f = fopen(stat_path, "r");
		gone = !f || !fgets(line, sizeof(line), f) || strstr(line, ") Z") != NULL;
		if (f)
			fclose(f);
	}
	assert_true(gone);
}

TEST_MAIN(T(a_password_becomes_a_token_that_the_server_reads), T(a_users_token_opens_a_connection),
	T(wrong_passwords_and_unknown_names_are_told_apart), T(a_second_open_changes_nothing),
	T(a_half_made_realm_is_made_anew_and_a_damaged_one_refused),
	T(a_realm_survives_memory_that_runs_out), T(users_are_added_changed_listed_and_deleted),
	T(two_processes_change_one_realm), T(expired_tickets_are_told_from_none),
	T(a_new_service_key_leaves_old_tickets_readable),
	T(a_password_is_changed_while_the_kdc_runs), T(configuration_that_cannot_be_is_refused),
	T(a_kdc_that_dies_is_started_again), T(a_port_in_use_is_said_plainly),
	T(a_kdc_that_cannot_run_is_reported_with_its_words), T(the_kdc_dies_with_its_process))
