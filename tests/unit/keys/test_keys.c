/* SPDX-License-Identifier: BSD-2-Clause
 * Keytabs, names of callers, and the key files of stock OpenAFS. */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "cell/keys/keys.h"
#include "cell/keys/set.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void scratch_cleanup(char **dir) { test_scratch_free(*dir); }

static void keytab_put(const char *path, const char *principal, unsigned kvno, int32_t enctype,
	const uint8_t *key, unsigned len)
{
	krb5_context ctx;
	krb5_keytab kt;
	krb5_principal who;
	char name[300];
	snprintf(name, sizeof(name), "WRFILE:%s", path);
	assert_int_equal(keys_krb5_bare(&ctx), 0);
	assert_int_equal(krb5_kt_resolve(ctx, name, &kt), 0);
	assert_int_equal(krb5_parse_name(ctx, principal, &who), 0);
	krb5_keytab_entry e = {.principal = who,
		.vno = kvno,
		.key = {.enctype = enctype,
			.length = len,
			.contents = (krb5_octet *)(uintptr_t)key}};
	assert_int_equal(krb5_kt_add_entry(ctx, kt, &e), 0);
	krb5_free_principal(ctx, who);
	krb5_kt_close(ctx, kt);
	krb5_free_context(ctx);
}

static void a_keytab_gives_the_keys_of_its_cell_and_no_others(void **state)
{
	(void)state;
	CLEANUP(scratch) char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/kt", dir);
	static const uint8_t key[32] = {1}, other[32] = {2};
	keytab_put(path, "host/box@A.TEST", 9, 18, other, 32);
	keytab_put(path, "afs/a.test@A.TEST", 2, 18, key, 32);
	keytab_put(path, "afs/a.test@A.TEST", 3, 17, key, 16);
	keytab_put(path, "afs/b.test@A.TEST", 4, 18, other, 32);
	keytab_put(path, "afs@A.TEST", 1, 20, key, 32);
	keytab_put(path, "afs/a.test@A.TEST", 5, 23, key, 16); /* RC4: passed over */
	CLEANUP(keys) struct keys *k = NULL;
	CLEANUP(buf) struct buf why = {};
	struct keys_config config = {.cell = "A.test", .keytab = path};
	assert_ok(keys_open(&config, &k, &why));
	struct keys_entry list[8];
	assert_int_equal(keys_list(k, list, 8), 3);
	assert_int_equal(list[0].kvno, 3);
	assert_int_equal(list[0].enctype, 17);
	assert_int_equal(list[1].kvno, 2);
	assert_int_equal(list[2].kvno, 1);

	keytab_put(path, "afs/a.test@A.TEST", 6, 18, other, 32);
	assert_int_equal(keys_list(k, list, 8), 3);
	assert_ok(keys_reload(k, &why));
	assert_int_equal(keys_list(k, list, 8), 4);
	assert_int_equal(list[0].kvno, 6);

	unlink(path);
	assert_err(keys_reload(k, &why), AFS_ENOENT);
	assert_int_equal(keys_list(k, list, 8), 4); /* the old ones stay */
}

static void a_wrong_keytab_is_refused_with_words(void **state)
{
	(void)state;
	CLEANUP(scratch) char *dir = test_scratch();
	static const uint8_t key[32] = {1};
	struct {
		const char *name, *principal;
		int32_t enctype;
		unsigned len;
		afs_err err;
		const char *words;
	} rows[] = {
		{"none", NULL, 0, 0, AFS_ENOENT, "No such file"},
		{"other", "host/x@A.TEST", 18, 32, AFS_ENOENT, "holds no key of afs/a.test"},
		{"cell", "afs/b.test@A.TEST", 18, 32, AFS_ENOENT, "holds no key of afs/a.test"},
		{"rc4", "afs/a.test@A.TEST", 23, 16, AFS_EWEAKKEY, "enctype 23"},
		{"des", "afs/a.test@A.TEST", 1, 8, AFS_EWEAKKEY, "enctype 1"},
		{"short", "afs/a.test@A.TEST", 18, 31, AFS_ECORRUPT, "version 1 and enctype 18"},
		{"junk", "", 0, 0, AFS_ECORRUPT, "junk"},
		{"empty", "", 0, 0, AFS_ECORRUPT, "empty"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(str) char *path = mem_printf("%s/%s", dir, rows[i].name);
		CLEANUP(keys) struct keys *k = NULL;
		CLEANUP(buf) struct buf why = {};
		struct keys_config config = {.cell = "a.test", .keytab = path};
		if (rows[i].principal && rows[i].principal[0]) {
			keytab_put(path, rows[i].principal, 1, rows[i].enctype, key, rows[i].len);
		} else if (rows[i].principal) {
			FILE *f = fopen(path, "w");
			assert_non_null(f);
			if (strcmp(rows[i].name, "junk") == 0)
				fputs("this is no keytab", f);
			fclose(f);
		}
		assert_err(keys_open(&config, &k, &why), rows[i].err);
		assert_null(k);
		assert_non_null(why.data);
		assert_non_null(strstr(why.data, rows[i].words));
		assert_non_null(strstr(why.data, path));
	}
}

static void memory_that_runs_out_is_said_and_nothing_is_half_done(void **state)
{
	(void)state;
	CLEANUP(scratch) char *dir = test_scratch();
	CLEANUP(str) char *path = mem_printf("%s/kt", dir);
	static const uint8_t key[32] = {1};
	keytab_put(path, "afs/a.test@A.TEST", 2, 18, key, 32);
	const struct keys_config config = {.cell = "a.test", .keytab = path};
	struct keys *k = NULL;
	afs_err err = AFS_ENOMEM;
	long n = 0;
	for (; err; n++) {
		assert_true(n < 100);
		mem_fail_after(n);
		err = keys_open(&config, &k, NULL);
		mem_fail_after(-1);
		assert_int_equal(err == AFS_OK, k != NULL);
		assert_true(err == AFS_OK || err == AFS_ENOMEM);
	}
	assert_true(n > 3);
	err = AFS_ENOMEM;
	for (n = 0; err; n++) {
		CLEANUP(keys_token) struct keys_token token = {};
		mem_fail_after(n);
		err = keys_localauth(k, &token);
		mem_fail_after(-1);
		assert_int_equal(err == AFS_OK, token.ticket != NULL);
		assert_true(err == AFS_OK || err == AFS_ENOMEM);
	}
	assert_true(n > 1);
	keys_close(k);
}

/* --- names ------------------------------------------------------------------------------- */

static void callers_get_their_afs_names(void **state)
{
	(void)state;
	static const char *const local[] = {"CORP.EXAMPLE"};
	const struct keys_realms realms = {.cell = "a.test", .local = local, .local_n = 1};
	static const struct {
		struct rx_caller caller;
		const char *text;
		bool local, localauth;
	} rows[] = {
		{{.authenticated = true, .name = "joe", .cell = "A.TEST"}, "joe", true, false},
		{{.authenticated = true, .name = "joe", .instance = "admin", .cell = "A.TEST"},
			"joe.admin", true, false},
		{{.authenticated = true, .name = "Joe", .cell = "corp.example"}, "Joe", true,
			false},
		{{.authenticated = true, .name = "joe", .cell = "B.TEST"}, "joe@b.test", false,
			false},
		{{.authenticated = true, .name = "Joe", .instance = "x", .cell = "B.TEST"},
			"Joe.x@b.test", false, false},
		{{.authenticated = true, .name = "afs"}, "afs", true, true},
		{{.authenticated = true, .name = "afs", .cell = "A.TEST"}, "afs", true, false},
		{{.authenticated = true, .name = "afs", .instance = "x"}, "afs.x", true, false},
		{{.authenticated = false, .name = "afs"}, "", false, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct keys_name n;
		keys_afs_name(&realms, &rows[i].caller, &n);
		assert_string_equal(n.text, rows[i].text);
		assert_int_equal(n.local, rows[i].local);
		assert_int_equal(n.localauth, rows[i].localauth);
		assert_int_equal(n.authenticated, rows[i].caller.authenticated);
	}
	struct rx_caller longest = {.authenticated = true};
	memset(longest.name, 'n', RX_NAME_MAX - 1);
	memset(longest.instance, 'i', RX_NAME_MAX - 1);
	memset(longest.cell, 'C', RX_NAME_MAX - 1);
	struct keys_name n;
	keys_afs_name(&realms, &longest, &n);
	assert_int_equal(strlen(n.text), 3 * (RX_NAME_MAX - 1) + 2);
	assert_int_equal(n.text[strlen(n.text) - 1], 'c');
}

/* --- stock's files ------------------------------------------------------------------------ */

static size_t slurp(const char *dir, const char *name, uint8_t *out, size_t cap)
{
	CLEANUP(str) char *path = mem_printf("%s/%s", dir, name);
	struct stat st;
	FILE *f = fopen(path, "r");
	if (!f)
		return 0;
	assert_int_equal(fstat(fileno(f), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	size_t n = fread(out, 1, cap, f);
	fclose(f);
	return n;
}

static void stock_key_files_hold_what_stock_would_write(void **state)
{
	(void)state;
	CLEANUP(scratch) char *dir = test_scratch();
	CLEANUP(keys) struct keys *k = NULL, *again = NULL;
	CLEANUP(str) char *keytab = mem_printf("%s/rxkad.keytab", dir);
	struct keys_config config = {.cell = "h1.test", .weak_crypto = true};
	uint8_t key[32], des[8], want[128], got[256];
	assert_ok(keys_open(&config, &k, NULL));
	test_vector("keys/tickets", "k5.key", key, 32);
	test_vector("keys/tickets", "v4.key", des, 8);
	assert_ok(keys_add(k, 1, 18, key, 32));
	for (int round = 0; round < 2; round++) {
		assert_ok(keys_write_openafs(k, "H1.TEST", dir, NULL));
		size_t n = test_vector("keys/tickets", "keyfileext.head", want, sizeof(want));
		memcpy(want + n, key, 32);
		assert_int_equal(slurp(dir, "KeyFileExt", got, sizeof(got)), n + 32);
		assert_memory_equal(got, want, n + 32);
		assert_int_equal(slurp(dir, "KeyFile", got, sizeof(got)), 0);
	}
	config.keytab = keytab;
	assert_ok(keys_open(&config, &again, NULL));
	struct keys_entry list[4];
	assert_int_equal(keys_list(again, list, 4), 1);
	assert_int_equal(list[0].enctype, 18);
	assert_true(slurp(dir, "rxkad.keytab", got, sizeof(got)) > 0);

	assert_ok(keys_add(k, 3, 1, des, 8));
	assert_ok(keys_write_openafs(k, "H1.TEST", dir, NULL));
	size_t n = test_vector("keys/tickets", "keyfile", want, sizeof(want));
	assert_int_equal(slurp(dir, "KeyFile", got, sizeof(got)), n);
	assert_memory_equal(got, want, n);

	CLEANUP(buf) struct buf why = {};
	CLEANUP(str) char *missing = mem_printf("%s/nowhere", dir);
	assert_err(keys_write_openafs(k, "H1.TEST", missing, &why), AFS_ENOENT);
	assert_non_null(strstr(why.data, missing));
}

/* --- threads ------------------------------------------------------------------------------ */

static void *read_tickets(void *keys)
{
	uint8_t ticket[512];
	size_t n = test_vector("keys/tickets", "local.ticket", ticket, sizeof(ticket));
	for (int i = 0; i < 500; i++) {
		struct rxkad_ticket t;
		if (keys_read_ticket(keys, 213, ticket, n, SEC(1796063192), &t) ||
			strcmp(t.name, "afs") != 0)
			return keys;
		CLEANUP(keys_token) struct keys_token token = {};
		if (i % 10 == 0 && keys_localauth(keys, &token))
			return keys;
	}
	return NULL;
}

static void threads_read_tickets_at_the_same_time(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *k = NULL;
	struct keys_config config = {.cell = "h1.test"};
	uint8_t key[32];
	pthread_t thread[4];
	assert_ok(keys_open(&config, &k, NULL));
	test_vector("keys/tickets", "k5.key", key, 32);
	assert_ok(keys_add(k, 1, 18, key, 32));
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_tickets, k), 0);
	for (int32_t v = 2; v < 40; v++)
		assert_ok(keys_add(k, v, 18, key, 32));
	for (size_t i = 0; i < 4; i++) {
		void *bad;
		assert_int_equal(pthread_join(thread[i], &bad), 0);
		assert_null(bad);
	}
}

/* --- tickets that are not there ------------------------------------------------------------ */

static void without_tickets_aklog_says_so(void **state)
{
	(void)state;
	CLEANUP(scratch) char *dir = test_scratch();
	CLEANUP(str) char *cache = mem_printf("FILE:%s/cc", dir);
	CLEANUP(str) char *conf = mem_printf("%s/krb5.conf", dir);
	CLEANUP(buf) struct buf why = {};
	struct keys_token token = {};
	FILE *f = fopen(conf, "w");
	assert_non_null(f);
	fputs("[libdefaults]\n default_realm = A.TEST\n dns_lookup_kdc = false\n", f);
	fclose(f);
	struct keys_aklog want = {.cell = "a.test", .krb5_conf = conf, .ccache = cache};
	assert_err(keys_aklog(&want, &token, &why), AFS_ENOTICKETS);
	assert_non_null(strstr(why.data, "kinit"));

	buf_fini(&why);
	want.krb5_conf = "/nonexistent/krb5.conf";
	assert_err(keys_aklog(&want, &token, &why), AFS_ECONFIG);
	assert_non_null(strstr(why.data, "/nonexistent/krb5.conf"));
	buf_fini(&why);
	want.cell = "";
	assert_err(keys_aklog(&want, &token, &why), AFS_EBADNAME);
	struct keys_login login = {
		.principal = "joe", .password = "x", .krb5_conf = conf, .ccache = cache};
	buf_fini(&why);
	assert_err(keys_login(&login, &why), AFS_ENOKDC);
	assert_non_null(strstr(why.data, "KDC"));
}

TEST_MAIN(T(a_keytab_gives_the_keys_of_its_cell_and_no_others),
	T(a_wrong_keytab_is_refused_with_words),
	T(memory_that_runs_out_is_said_and_nothing_is_half_done), T(callers_get_their_afs_names),
	T(stock_key_files_hold_what_stock_would_write), T(threads_read_tickets_at_the_same_time),
	T(without_tickets_aklog_says_so))
