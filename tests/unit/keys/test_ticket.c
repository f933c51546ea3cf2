/* SPDX-License-Identifier: BSD-2-Clause
 * Tickets of each kind through keys_read_ticket: captured ones, made-up ones, and broken ones. */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "cell/keys/keys.h"
#include "cell/keys/set.h"
#include "cell/keys/ticket.h"

#include <malloc.h>
#include <string.h>

static const char file[] = "keys/tickets";
/* The captured ticket is valid from 2026-11-30 18:26:32 to 2026-12-01 18:26:32 UTC. */
static const wall_ns k5_begins = SEC(1796063192), k5_expires = SEC(1796149592);

static struct keys *keys_with_captured_key(bool weak)
{
	struct keys *k;
	uint8_t key[32];
	struct keys_config config = {.cell = "H1.test", .weak_crypto = weak};
	assert_ok(keys_open(&config, &k, NULL));
	assert_int_equal(test_vector(file, "k5.key", key, 32), 32);
	assert_ok(keys_add(k, 1, 18, key, 32));
	return k;
}

static void a_ticket_of_a_real_kdc_is_read(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *k = keys_with_captured_key(false);
	uint8_t ticket[512], session[8];
	size_t n = test_vector(file, "k5.ticket", ticket, sizeof(ticket));
	test_vector(file, "k5.session", session, 8);
	struct rxkad_ticket t;
	assert_ok(keys_read_ticket(k, 256, ticket, n, k5_begins, &t));
	assert_memory_equal(t.session_key, session, 8);
	assert_string_equal(t.name, "user1");
	assert_string_equal(t.instance, "");
	assert_string_equal(t.cell, "H1.TEST");
	assert_int_equal(t.begins, k5_begins);
	assert_int_equal(t.expires, k5_expires);
}

static void a_localauth_ticket_of_a_stock_tool_is_read(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *k = keys_with_captured_key(false);
	uint8_t ticket[512], session[8];
	size_t n = test_vector(file, "local.ticket", ticket, sizeof(ticket));
	test_vector(file, "local.session", session, 8);
	struct rxkad_ticket t;
	assert_ok(keys_read_ticket(k, 213, ticket, n, k5_begins, &t));
	assert_memory_equal(t.session_key, session, 8);
	assert_string_equal(t.name, "afs");
	assert_string_equal(t.instance, "");
	assert_string_equal(t.cell, "");
	assert_int_equal(t.begins, 0);
	assert_int_equal(t.expires, SEC(INT32_MAX));
}

static void our_localauth_plaintext_is_byte_for_byte_stocks(void **state)
{
	(void)state;
	uint8_t want[256], session[8], got[K5_LOCAL_PART_MAX];
	size_t n = test_vector(file, "local.plain", want, sizeof(want)), len;
	test_vector(file, "local.session", session, 8);
	assert_true(k5_local_part_enc(session, got, sizeof(got), &len));
	assert_int_equal(len, n);
	assert_memory_equal(got, want, n);
	for (size_t cap = 0; cap < n; cap++)
		assert_false(k5_local_part_enc(session, got, cap, &len));
}

static void the_enc_part_of_a_stock_tool_is_written_as_it_was(void **state)
{
	(void)state;
	uint8_t ticket[512], got[512];
	size_t n = test_vector(file, "local.ticket", ticket, sizeof(ticket)), len;
	struct k5_sealed s;
	assert_ok(k5_sealed_dec(213, ticket, n, &s));
	assert_int_equal(s.enctype, 18);
	assert_int_equal(s.kvno, 1);
	assert_true(k5_sealed_enc(&s, got, sizeof(got), &len));
	assert_int_equal(len, n);
	assert_memory_equal(got, ticket, n);
}

static void our_localauth_token_is_read_as_the_cell_itself(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *k = keys_with_captured_key(false);
	CLEANUP(keys_token) struct keys_token token = {}, again = {};
	struct rxkad_ticket t;
	assert_ok(keys_localauth(k, &token));
	assert_int_equal(token.kad.kvno, 213);
	assert_string_equal(token.cell, "h1.test");
	assert_ok(keys_read_ticket(k, 213, token.kad.ticket, token.kad.ticket_len, k5_begins, &t));
	assert_memory_equal(t.session_key, token.kad.session_key, 8);
	assert_string_equal(t.name, "afs");
	assert_string_equal(t.cell, "");
	assert_int_equal(t.expires, token.kad.expires);
	assert_ok(keys_localauth(k, &again));
	assert_memory_not_equal(again.kad.session_key, token.kad.session_key, 8);
}

static void localauth_takes_stocks_first_enctype_and_its_newest_key(void **state)
{
	(void)state;
	static const uint8_t key[32] = {1};
	struct keys_config config = {.cell = "c.test"};
	CLEANUP(keys) struct keys *k = NULL;
	CLEANUP(keys_token) struct keys_token none = {};
	assert_ok(keys_open(&config, &k, NULL));
	assert_err(keys_localauth(k, &none), AFS_ENOENT);
	static const struct {
		int32_t kvno, enctype;
		uint32_t len;
		int32_t want_kvno, want_enctype;
	} rows[] = {{9, 20, 32, 9, 20}, {4, 17, 16, 4, 17}, {3, 18, 32, 3, 18}, {7, 18, 32, 7, 18},
		{5, 18, 32, 7, 18}, {8, 17, 16, 7, 18}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(keys_token) struct keys_token token = {};
		struct k5_sealed s;
		assert_ok(keys_add(k, rows[i].kvno, rows[i].enctype, key, rows[i].len));
		assert_ok(keys_localauth(k, &token));
		assert_ok(k5_sealed_dec(213, token.kad.ticket, token.kad.ticket_len, &s));
		assert_int_equal(s.kvno, rows[i].want_kvno);
		assert_int_equal(s.enctype, rows[i].want_enctype);
	}
	struct keys_entry list[8];
	assert_int_equal(keys_list(k, list, 8), 6);
	for (size_t i = 1; i < 6; i++)
		assert_true(list[i - 1].kvno >= list[i].kvno);
}

/* --- made-up tickets -------------------------------------------------------------------- */

/* An EncTicketPart to vary. */
struct made {
	const char *comp[4];
	size_t comps;
	const char *realm;
	wall_ns auth, start /* 0: left out */, end;
	uint8_t flags;
	int32_t enctype;
	size_t key_len;
	size_t pac; /* bytes of authorization data */
};

static const struct made ordinary = {.comp = {"user1"},
	.comps = 1,
	.realm = "H1.TEST",
	.auth = SEC(1796063192),
	.end = SEC(1796149592),
	.enctype = 18,
	.key_len = 32};

static void wrap(struct der_out *o, int field, const uint8_t *mark)
{
	der_wrap(o, (uint8_t)(DER_CONTEXT | field), mark);
}

static size_t make_part(const struct made *m, uint8_t *out, size_t cap)
{
	static const uint8_t key[64] = {0x91, 0x38, 0x0c, 0xd4}, pac[TICKET_MAX];
	uint8_t flags[5] = {0, m->flags, 0, 0, 0};
	struct der_out o = {out, out + cap, false};
	const uint8_t *end = o.p, *f = o.p, *g;
	if (m->pac) {
		der_put_bytes(&o, DER_OCTETS, pac, m->pac);
		wrap(&o, 1, f);
		g = o.p;
		der_put_integer(&o, 1);
		wrap(&o, 0, g);
		der_wrap(&o, DER_SEQUENCE, f);
		der_wrap(&o, DER_SEQUENCE, f);
		wrap(&o, 10, f);
	}
	f = o.p;
	der_put_time(&o, m->end);
	wrap(&o, 7, f);
	if (m->start) {
		f = o.p;
		der_put_time(&o, m->start);
		wrap(&o, 6, f);
	}
	f = o.p;
	der_put_time(&o, m->auth);
	wrap(&o, 5, f);
	f = g = o.p;
	der_put_bytes(&o, DER_OCTETS, NULL, 0);
	wrap(&o, 1, g);
	g = o.p;
	der_put_integer(&o, 1);
	wrap(&o, 0, g);
	der_wrap(&o, DER_SEQUENCE, f);
	wrap(&o, 4, f);
	f = g = o.p;
	for (size_t i = m->comps; i-- > 0;)
		der_put_bytes(&o, DER_TEXT, m->comp[i], strlen(m->comp[i]));
	der_wrap(&o, DER_SEQUENCE, g);
	wrap(&o, 1, g);
	g = o.p;
	der_put_integer(&o, 1);
	wrap(&o, 0, g);
	der_wrap(&o, DER_SEQUENCE, f);
	wrap(&o, 3, f);
	f = o.p;
	der_put_bytes(&o, DER_TEXT, m->realm, strlen(m->realm));
	wrap(&o, 2, f);
	f = g = o.p;
	der_put_bytes(&o, DER_OCTETS, key, m->key_len);
	wrap(&o, 1, g);
	g = o.p;
	der_put_integer(&o, m->enctype);
	wrap(&o, 0, g);
	der_wrap(&o, DER_SEQUENCE, f);
	wrap(&o, 1, f);
	f = o.p;
	der_put_bytes(&o, DER_BITS, flags, 5);
	wrap(&o, 0, f);
	der_wrap(&o, DER_SEQUENCE, end);
	der_wrap(&o, DER_APPLICATION | 3, end);
	assert_false(o.full);
	size_t n = (size_t)(end - o.p);
	memmove(out, o.p, n);
	return n;
}

/* Seals a part with a key of `k` as a whole ticket (256). */
static size_t make_ticket(struct keys *k, int32_t kvno, int32_t enctype, const uint8_t *part,
	size_t n, uint8_t *out, size_t cap)
{
	static uint8_t cipher[TICKET_MAX + 1024];
	const struct key *key = NULL;
	for (size_t i = 0; i < k->set.n; i++)
		if (k->set.key[i].enctype == enctype)
			key = &k->set.key[i];
	assert_non_null(key);
	size_t len;
	krb5_keyblock block = {.enctype = enctype,
		.length = key->len,
		.contents = (krb5_octet *)(uintptr_t)key->bytes};
	krb5_data plain = {.length = (unsigned)n, .data = (char *)(uintptr_t)part};
	assert_int_equal(krb5_c_encrypt_length(k->krb5, enctype, n, &len), 0);
	assert_true(len <= sizeof(cipher));
	krb5_enc_data enc = {.ciphertext = {.length = (unsigned)len, .data = (char *)cipher}};
	assert_int_equal(krb5_c_encrypt(k->krb5, &block, 2, NULL, &plain, &enc), 0);

	struct k5_sealed s = {enctype, kvno, {cipher, enc.ciphertext.length}};
	static uint8_t inner[TICKET_MAX + 1024];
	assert_true(k5_sealed_enc(&s, inner, sizeof(inner), &len));
	struct der_out o = {out, out + cap, false};
	const uint8_t *end = o.p, *f;
	/* the EncryptedData as it is, behind its tag */
	assert_true((size_t)(o.p - o.start) >= len);
	o.p -= len;
	memcpy(o.p, inner, len);
	wrap(&o, 3, end);
	f = o.p;
	const uint8_t *g = o.p;
	der_put_bytes(&o, DER_TEXT, "h1.test", 7);
	der_put_bytes(&o, DER_TEXT, "afs", 3);
	der_wrap(&o, DER_SEQUENCE, g);
	wrap(&o, 1, g);
	g = o.p;
	der_put_integer(&o, 1);
	wrap(&o, 0, g);
	der_wrap(&o, DER_SEQUENCE, f);
	wrap(&o, 2, f);
	f = o.p;
	der_put_bytes(&o, DER_TEXT, "H1.TEST", 7);
	wrap(&o, 1, f);
	f = o.p;
	der_put_integer(&o, 5);
	wrap(&o, 0, f);
	der_wrap(&o, DER_SEQUENCE, end);
	der_wrap(&o, DER_APPLICATION | 1, end);
	assert_false(o.full);
	len = (size_t)(end - o.p);
	memmove(out, o.p, len);
	return len;
}

static afs_err read_made(struct keys *k, const struct made *m, wall_ns now, struct rxkad_ticket *t)
{
	static uint8_t part[TICKET_MAX + 512], ticket[TICKET_MAX + 1024];
	size_t n = make_part(m, part, sizeof(part));
	n = make_ticket(k, 1, 18, part, n, ticket, sizeof(ticket));
	return keys_read_ticket(k, 256, ticket, n, now, t);
}

static void times_are_judged_as_rxkad_does(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *k = keys_with_captured_key(false);
	const wall_ns b = SEC(1796063192), day = SEC(86400);
	const struct {
		wall_ns auth, start, end, now;
		afs_err err;
	} rows[] = {
		{b, 0, b + day, b + day, AFS_OK},                /* to the last second */
		{b, 0, b + day, b + day + SEC(1), AFS_EEXPIRED}, /* and no skew after it */
		{b, 0, b + day, b - SEC(15 * 60), AFS_OK},       /* 15 minutes before it begins */
		{b, 0, b + day, b - SEC(15 * 60 + 1), AFS_ENOAUTH},
		{b, b + day / 2, b + day, b, AFS_ENOAUTH}, /* postdated */
		{b, 0, b + 30 * day, b, AFS_OK},           /* 30 days and no more */
		{b, 0, b + 30 * day + SEC(1), b, AFS_EBADTICKET},
		{0, 0, b + 3000 * day, b, AFS_OK}, /* from 1970: localauth */
		{b, 0, b, b, AFS_EBADTICKET}, {b + SEC(1), 0, b, b, AFS_EBADTICKET},
		{b, 0, SEC(9000000000), b, AFS_EBADTICKET}, /* the year 2255 */
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct made m = ordinary;
		struct rxkad_ticket t;
		m.auth = rows[i].auth, m.start = rows[i].start, m.end = rows[i].end;
		assert_err(read_made(k, &m, rows[i].now, &t), rows[i].err);
	}
}

static void an_invalid_flag_and_odd_session_keys_are_refused(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *k = keys_with_captured_key(false);
	struct rxkad_ticket t;
	struct made m = ordinary;
	m.flags = 1;
	assert_err(read_made(k, &m, k5_begins, &t), AFS_ENOAUTH);
	m.flags = 0xfe;
	assert_ok(read_made(k, &m, k5_begins, &t));
	m = ordinary;
	m.enctype = 1, m.key_len = 8;
	assert_ok(read_made(k, &m, k5_begins, &t));
	assert_hex(t.session_key, 8, "91380cd400000000");
	m.key_len = 7;
	assert_err(read_made(k, &m, k5_begins, &t), AFS_EBADTICKET);
	m.enctype = 18, m.key_len = 0;
	assert_err(read_made(k, &m, k5_begins, &t), AFS_EBADTICKET);
	m.enctype = 0, m.key_len = 32;
	assert_err(read_made(k, &m, k5_begins, &t), AFS_EBADTICKET);
}

static void a_large_pac_is_passed_over(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *k = keys_with_captured_key(false);
	struct rxkad_ticket t;
	struct made m = ordinary;
	m.pac = 11000;
	assert_ok(read_made(k, &m, k5_begins, &t));
	m.pac = 11900; /* the ticket is now more than 12000 bytes */
	assert_err(read_made(k, &m, k5_begins, &t), AFS_ETICKETLEN);
}

static void principals_become_names_or_are_refused(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *k = keys_with_captured_key(false);
	static const char long63[] =
		"123456789012345678901234567890123456789012345678901234567890123";
	static const char long64[] =
		"1234567890123456789012345678901234567890123456789012345678901234";
	const struct {
		const char *comp[4];
		size_t n;
		const char *realm, *name, *instance;
	} rows[] = {
		{{"user1"}, 1, "H1.TEST", "user1", ""},
		{{"user1", "admin"}, 2, "H1.TEST", "user1", "admin"},
		{{"a", "b.c"}, 2, "H1.TEST", "a", "b.c"},
		{{"host", "box.h1.test"}, 2, "H1.TEST", "rcmd", "box"},
		{{"imap", "box.h1.test"}, 2, "H1.TEST", "imap", "box"},
		{{"kadmin", "box.h1.test"}, 2, "H1.TEST", "kadmin", "box.h1.test"},
		{{"host"}, 1, "H1.TEST", "host", ""},
		{{long63, long63}, 2, long63, long63, long63},
		{{"afs"}, 1, "H1.TEST", "afs", ""},
		{{"a.b"}, 1, "H1.TEST", NULL, NULL},
		{{"a.b", "c"}, 2, "H1.TEST", NULL, NULL},
		{{long64}, 1, "H1.TEST", NULL, NULL},
		{{"a", long64}, 2, "H1.TEST", NULL, NULL},
		{{"a"}, 1, long64, NULL, NULL},
		{{"a", "b", "c"}, 3, "H1.TEST", NULL, NULL},
		{{"a"}, 0, "H1.TEST", NULL, NULL},
		{{""}, 1, "H1.TEST", NULL, NULL},
		{{"a", ""}, 2, "H1.TEST", NULL, NULL},
		{{"", "a"}, 2, "H1.TEST", NULL, NULL},
		{{"host", ".x"}, 2, "H1.TEST", NULL, NULL},
		{{"bob@other.test"}, 1, "H1.TEST", NULL, NULL},
		{{"bob", "x@other.test"}, 2, "H1.TEST", NULL, NULL},
		{{"system:administrators"}, 1, "H1.TEST", NULL, NULL},
		{{"a\nb"}, 1, "H1.TEST", NULL, NULL},
		{{"a\tb"}, 1, "H1.TEST", NULL, NULL},
		{{"a\x7f"}, 1, "H1.TEST", NULL, NULL},
		{{"a"}, 1, "H1\n.TEST", NULL, NULL},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct made m = ordinary;
		struct rxkad_ticket t;
		memcpy(m.comp, rows[i].comp, sizeof(m.comp));
		m.comps = rows[i].n;
		m.realm = rows[i].realm;
		afs_err err = read_made(k, &m, k5_begins, &t);
		assert_err(err, rows[i].name ? AFS_OK : AFS_EBADTICKET);
		if (rows[i].name) {
			assert_string_equal(t.name, rows[i].name);
			assert_string_equal(t.instance, rows[i].instance);
			assert_string_equal(t.cell, rows[i].realm);
		}
	}
	k->allow_dotted = true;
	struct made m = ordinary;
	struct rxkad_ticket t;
	m.comp[0] = "a.b";
	assert_ok(read_made(k, &m, k5_begins, &t));
	assert_string_equal(t.name, "a.b");
}

/* --- broken ones --------------------------------------------------------------------------- */

static afs_err read_exact(struct keys *k, int32_t kind, const uint8_t *ticket, size_t n)
{
	CLEANUP(heap)
	uint8_t *exact = mem_alloc(n ? n : 1, 1); /* so that a sanitizer sees a read past it */
	struct rxkad_ticket t;
	memcpy(exact, ticket, n);
	return keys_read_ticket(k, kind, exact, n, k5_begins, &t);
}

static void every_truncation_of_a_ticket_is_refused(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *k = keys_with_captured_key(false);
	uint8_t ticket[512];
	size_t n = test_vector(file, "k5.ticket", ticket, sizeof(ticket));
	for (size_t cut = 0; cut < n; cut++)
		assert_err(read_exact(k, 256, ticket, cut), AFS_EBADTICKET);
	ticket[n] = 0;
	assert_err(read_exact(k, 256, ticket, n + 1), AFS_EBADTICKET);
	n = test_vector(file, "local.ticket", ticket, sizeof(ticket));
	for (size_t cut = 0; cut < n; cut++)
		assert_err(read_exact(k, 213, ticket, cut), AFS_EBADTICKET);
	assert_ok(read_exact(k, 213, ticket, n));
	assert_err(read_exact(k, 256, ticket, n), AFS_EBADTICKET);
}

static void every_truncation_of_the_sealed_part_is_refused(void **state)
{
	(void)state;
	static uint8_t part[1024];
	size_t n = make_part(&ordinary, part, sizeof(part));
	struct rxkad_ticket t;
	for (size_t cut = 0; cut < n; cut++) {
		CLEANUP(heap) uint8_t *exact = mem_alloc(cut ? cut : 1, 1);
		memcpy(exact, part, cut);
		assert_err(k5_part_dec(exact, cut, k5_begins, false, &t), AFS_EBADTICKET);
	}
	assert_ok(k5_part_dec(part, n, k5_begins, false, &t));
	memset(part + n, 0, 8); /* padding of old enctypes */
	assert_ok(k5_part_dec(part, n + 8, k5_begins, false, &t));
}

static void an_altered_ticket_is_never_read(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *k = keys_with_captured_key(false);
	uint8_t ticket[512];
	size_t n = test_vector(file, "local.ticket", ticket, sizeof(ticket));
	for (size_t bit = 0; bit < n * 8; bit++) {
		ticket[bit / 8] ^= (uint8_t)(1 << bit % 8);
		afs_err err = read_exact(k, 213, ticket, n);
		assert_true(err == AFS_EBADTICKET || err == AFS_EUNKNOWNKEY);
		ticket[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	/* behind the seal too, when a changed bit happens to be judged at all */
	n = test_vector(file, "k5.ticket", ticket, sizeof(ticket));
	ticket[n - 1] ^= 1;
	assert_err(read_exact(k, 256, ticket, n), AFS_EBADTICKET);
}

static void a_key_that_is_not_there_is_said_to_be_unknown(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *k = NULL;
	struct keys_config config = {.cell = "h1.test"};
	uint8_t key[32], ticket[512], other[32] = {1};
	assert_ok(keys_open(&config, &k, NULL));
	test_vector(file, "k5.key", key, 32);
	size_t n = test_vector(file, "k5.ticket", ticket, sizeof(ticket));
	assert_err(read_exact(k, 256, ticket, n), AFS_EUNKNOWNKEY);
	assert_ok(keys_add(k, 2, 18, key, 32)); /* another kvno */
	assert_err(read_exact(k, 256, ticket, n), AFS_EUNKNOWNKEY);
	assert_ok(keys_add(k, 1, 20, key, 32)); /* another enctype */
	assert_err(read_exact(k, 256, ticket, n), AFS_EUNKNOWNKEY);
	assert_ok(keys_add(k, 1, 18, other, 32)); /* another key */
	assert_err(read_exact(k, 256, ticket, n), AFS_EBADTICKET);
	assert_err(keys_add(k, 1, 18, key, 32), AFS_EEXIST);
	assert_ok(keys_add(k, 1, 18, other, 32));
	static const int32_t kinds[] = {-1, INT32_MIN, 0, 3, 255, 257, 400, 511, 512, INT32_MAX};
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_err(read_exact(k, kinds[i], ticket, n), AFS_EUNKNOWNKEY);
}

static void weak_keys_are_refused_unless_admitted(void **state)
{
	(void)state;
	static const uint8_t key[32] = {1, 2, 3};
	struct keys_config config = {.cell = "h1.test"};
	for (int weak = 0; weak < 2; weak++) {
		CLEANUP(keys) struct keys *k = NULL;
		config.weak_crypto = weak;
		assert_ok(keys_open(&config, &k, NULL));
		static const struct {
			int32_t enctype;
			size_t len;
		} rows[] = {{1, 8}, {3, 8}, {16, 24}, {23, 16}};
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			assert_err(keys_add(k, 1 + (int32_t)i, rows[i].enctype, key, rows[i].len),
				weak ? AFS_OK : AFS_EWEAKKEY);
		static const int32_t never[] = {-1, 0, 4, 7, 15, 24, 27, 512, INT32_MAX};
		for (size_t i = 0; i < ARRAY_SIZE(never); i++)
			assert_err(keys_add(k, 9, never[i], key, 16), AFS_EWEAKKEY);
		assert_err(keys_add(k, 9, 18, key, 16), AFS_EINVAL);
		assert_err(keys_add(k, 9, 17, key, 32), AFS_EINVAL);
	}
}

static void tickets_sealed_with_each_accepted_enctype_are_read(void **state)
{
	(void)state;
	static const struct {
		int32_t enctype;
		size_t len;
	} rows[] = {{17, 16}, {18, 32}, {19, 16}, {20, 32}, {25, 16}, {26, 32}, {16, 24}, {23, 16}};
	static uint8_t part[1024], ticket[2048];
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(keys) struct keys *k = NULL;
		struct keys_config config = {.cell = "h1.test", .weak_crypto = true};
		/* bytes with odd parity, which 3DES wants */
		static const uint8_t key[32] = {1, 2, 4, 7, 8, 11, 13, 14, 16, 19, 21, 22, 25, 26,
			28, 31, 32, 35, 37, 38, 41, 42, 44, 47};
		assert_ok(keys_open(&config, &k, NULL));
		assert_ok(keys_add(k, 5, rows[i].enctype, key, rows[i].len));
		size_t n = make_part(&ordinary, part, sizeof(part));
		n = make_ticket(k, 5, rows[i].enctype, part, n, ticket, sizeof(ticket));
		struct rxkad_ticket t;
		assert_ok(keys_read_ticket(k, 256, ticket, n, k5_begins, &t));
		assert_string_equal(t.name, "user1");
	}
}

static void an_old_ticket_is_read_when_its_des_key_was_admitted(void **state)
{
	(void)state;
	uint8_t key[8], ticket[64], session[8], plain[64];
	size_t n = test_vector(file, "v4.ticket", ticket, sizeof(ticket));
	test_vector(file, "v4.key", key, 8);
	test_vector(file, "v4.session", session, 8);
	CLEANUP(keys) struct keys *strict = keys_with_captured_key(false);
	assert_err(keys_add(strict, 3, 1, key, 8), AFS_EWEAKKEY);
	assert_err(read_exact(strict, 3, ticket, n), AFS_EUNKNOWNKEY);

	CLEANUP(keys) struct keys *k = keys_with_captured_key(true);
	struct rxkad_ticket t;
	assert_ok(keys_add(k, 3, 1, key, 8));
	assert_ok(keys_read_ticket(k, 3, ticket, n, k5_begins, &t));
	assert_memory_equal(t.session_key, session, 8);
	assert_string_equal(t.name, "afs");
	assert_string_equal(t.cell, "");
	assert_int_equal(t.begins, 0);
	assert_int_equal(t.expires, 0);
	memcpy(plain, ticket, n);
	k4_decrypt(key, plain, n);
	uint8_t want[64];
	assert_int_equal(test_vector(file, "v4.plain", want, sizeof(want)), n);
	assert_memory_equal(plain, want, n);

	assert_err(read_exact(k, 4, ticket, n), AFS_EUNKNOWNKEY);
	for (size_t cut = 0; cut < n; cut++)
		assert_err(read_exact(k, 3, ticket, cut), AFS_EBADTICKET);
	for (size_t cut = 0; cut < n; cut++) {
		CLEANUP(heap) uint8_t *exact = mem_alloc(cut ? cut : 1, 1);
		memcpy(exact, want, cut);
		assert_err(k4_dec(exact, cut, k5_begins, &t), AFS_EBADTICKET);
	}
	/* a life of 5 minutes, the longest table entry, and 30 days, all begun yesterday */
	static const struct {
		uint8_t life;
		int64_t seconds;
	} lives[] = {{1, 300}, {0x7f, 38100}, {0x80, 38400}, {0xbf, 2592000}, {0xc0, 2592000}};
	for (size_t i = 0; i < ARRAY_SIZE(lives); i++) {
		uint32_t begun = 1796000000;
		want[19] = lives[i].life;
		for (int b = 0; b < 4; b++)
			want[20 + b] = (uint8_t)(begun >> (24 - 8 * b));
		wall_ns end = SEC(begun + lives[i].seconds);
		assert_ok(k4_dec(want, n, end + SEC(900), &t));
		assert_int_equal(t.expires, end);
		assert_err(k4_dec(want, n, end + SEC(901), &t), AFS_EEXPIRED);
		assert_err(k4_dec(want, n, SEC(begun - 901), &t), AFS_ENOAUTH);
	}
}

static void bad_tickets_leave_no_memory_behind(void **state)
{
	(void)state;
	CLEANUP(keys) struct keys *k = keys_with_captured_key(false);
	uint8_t ticket[512];
	struct rxkad_ticket t;
	size_t n = test_vector(file, "local.ticket", ticket, sizeof(ticket));
	size_t before = 0;
	for (unsigned i = 0; i < 4000; i++) {
		if (i == 100) /* past what libraries set up once */
			before = mallinfo2().uordblks;
		ticket[30 + i % 100] ^= 0x55;
		assert_true(keys_read_ticket(k, 213, ticket, n - i % 2, k5_begins, &t) != AFS_OK);
		ticket[30 + i % 100] ^= 0x55;
	}
	assert_int_equal(mallinfo2().uordblks, before);
}

TEST_MAIN(T(a_ticket_of_a_real_kdc_is_read), T(a_localauth_ticket_of_a_stock_tool_is_read),
	T(our_localauth_plaintext_is_byte_for_byte_stocks),
	T(the_enc_part_of_a_stock_tool_is_written_as_it_was),
	T(our_localauth_token_is_read_as_the_cell_itself),
	T(localauth_takes_stocks_first_enctype_and_its_newest_key),
	T(times_are_judged_as_rxkad_does), T(an_invalid_flag_and_odd_session_keys_are_refused),
	T(a_large_pac_is_passed_over), T(principals_become_names_or_are_refused),
	T(every_truncation_of_a_ticket_is_refused),
	T(every_truncation_of_the_sealed_part_is_refused), T(an_altered_ticket_is_never_read),
	T(a_key_that_is_not_there_is_said_to_be_unknown), T(weak_keys_are_refused_unless_admitted),
	T(tickets_sealed_with_each_accepted_enctype_are_read),
	T(an_old_ticket_is_read_when_its_des_key_was_admitted),
	T(bad_tickets_leave_no_memory_behind))
