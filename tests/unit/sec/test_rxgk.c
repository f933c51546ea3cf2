/* SPDX-License-Identifier: BSD-2-Clause
 * Both ends of rxgk against computed vectors, against each other, and against bad bytes. */
#include "tests/lib/test.h"

#include "rx/sec/rxgk_conn.h"

#include <malloc.h>
#include <pthread.h>

static const char file[] = "sec/rxgk";
static const int32_t etypes[] = {17, 18, 19, 20, 25, 26};

/* Counts up from what it was told: f0, f1 ... for the vectors. */
static void counted(void *ctx, void *out, size_t n)
{
	const uint8_t first = ctx ? *(uint8_t *)ctx : 0xf0;
	for (size_t i = 0; i < n; i++)
		((uint8_t *)out)[i] = (uint8_t)(first + i);
}

struct reader {
	struct rxgk_terms terms;
	afs_err err;
	size_t len;
};

static afs_err read_token(
	void *ctx, uint8_t index, const uint8_t *token, size_t len, wall_ns now, struct rxgk_ticket *out)
{
	struct reader *r = ctx;
	(void)index, (void)token, (void)now;
	r->len = len;
	if (r->err)
		return r->err;
	out->terms = r->terms;
	strcpy(out->name, "who");
	strcpy(out->cell, "r.test");
	return AFS_OK;
}

static const wall_ns today = SEC(1000000);

struct pair {
	struct reader reader;
	struct rxgk_server server;
	uint8_t nonce;
	struct rx_conn_id id;
	struct rx_sec *c, *s;
};

static struct rx_sec *client_of(struct pair *p, uint8_t index)
{
	static uint8_t bytes[50] = {7};
	const struct rxgk_token token = {.terms = p->reader.terms, .token = bytes, .len = sizeof(bytes)};
	const struct rxgk_random random = {.fill = counted};
	struct rx_sec *c = rxgk_client_new(&token, index, UINT64_C(0x003fce865c2a8000), &random);
	if (c)
		c->ops->bind(c, &p->id);
	return c;
}

static void pair_init(struct pair *p, int32_t etype, enum rx_sec_level level, uint8_t index)
{
	*p = (struct pair){.nonce = 0x20,
		.id = {.epoch = 0x9a0b0c0d, .cid = 0x12345670, .service = 73, .index = index, .call_numbers = {1}},
		.reader = {.terms = {.etype = etype, .level = level, .expires = today + SEC(60)}}};
	for (int i = 0; i < ETYPE_KEY_MAX; i++)
		p->reader.terms.k0[i] = (uint8_t)i;
	p->server = (struct rxgk_server){
		.read_token = read_token, .ctx = &p->reader, .random = {.fill = counted, .ctx = &p->nonce}};
	p->c = client_of(p, index);
	p->s = rxgk_server_new(&p->server, index);
	assert_non_null(p->c);
	assert_non_null(p->s);
}

static afs_err shake(struct pair *p, struct rx_caller *who)
{
	uint8_t challenge[64], response[RX_RESPONSE_MAX];
	size_t challenge_len, len;
	assert_ok(p->s->ops->challenge(p->s, challenge, sizeof(challenge), &challenge_len));
	assert_int_equal(challenge_len, RXGK_NONCE);
	assert_ok(p->c->ops->respond(p->c, &p->id, challenge, challenge_len, response, sizeof(response), &len));
	return p->s->ops->accept(p->s, &p->id, response, len, today, who);
}

static void pair_fini(struct pair *p)
{
	rx_sec_free(p->c);
	rx_sec_free(p->s);
}

static const struct rx_sec_packet first_packet = {
	.epoch = 0x9a0b0c0d, .cid = 0x12345670, .call = 1, .seq = 1, .from_client = true, .at = 1};

static void vectors(void **state)
{
	(void)state;
	static const char *const etype_names[] = {"17", "18"};
	for (int i = 0; i < 2; i++) {
		struct pair p;
		char name[32];
		uint8_t want[512], got[512] = {}, seed[20];
		size_t n, len;
		pair_init(&p, 17 + i, RX_LEVEL_CRYPT, RX_SEC_RXGK);
		test_unhex("9a0b0c0d12345670003fce865c2a800000000000", seed, sizeof(seed));
		snprintf(name, sizeof(name), "tk.%s", etype_names[i]);
		n = test_vector(file, name, want, sizeof(want));
		assert_ok(etype_prf_plus(etype_of(17 + i), p.reader.terms.k0, seed, sizeof(seed), got, n));
		assert_memory_equal(got, want, n);

		snprintf(name, sizeof(name), "data.%s", etype_names[i]);
		n = test_vector(file, name, want, sizeof(want));
		memcpy(got + p.c->header, (uint8_t[]){0, 0, 1, 0xfe}, 4);
		assert_int_equal(p.c->ops->seal(p.c, &first_packet, got, 4, &len), 0);
		assert_int_equal(len, n);
		assert_memory_equal(got, want, n);

		snprintf(name, sizeof(name), "response.%s", etype_names[i]);
		n = test_vector(file, name, want, sizeof(want));
		uint8_t challenge[20], response[RX_RESPONSE_MAX];
		counted(&p.nonce, challenge, sizeof(challenge));
		assert_ok(p.c->ops->respond(p.c, &p.id, challenge, sizeof(challenge), response, sizeof(response), &len));
		assert_memory_equal(response + len - n, want, n);
		assert_int_equal(rxgk_get32(response + len - n - 4), n);
		pair_fini(&p);

		pair_init(&p, 17 + i, RX_LEVEL_AUTH, RX_SEC_RXGK);
		snprintf(name, sizeof(name), "mic.%s", etype_names[i]);
		n = test_vector(file, name, want, sizeof(want));
		memcpy(got + p.c->header, (uint8_t[]){0, 0, 1, 0xfe}, 4);
		p.c->ops->seal(p.c, &first_packet, got, 4, &len);
		assert_int_equal(len, n + 4);
		assert_memory_equal(got, want, n);
		assert_hex(got + n, 4, "000001fe");
		pair_fini(&p);
	}
}

static void there_and_back(struct pair *p, bool from_client, size_t len)
{
	struct rx_sec *from = from_client ? p->c : p->s, *to = from_client ? p->s : p->c;
	struct rx_sec_packet id = first_packet;
	uint8_t body[3000], data[2000];
	size_t body_len, off, data_len;
	id.from_client = from_client;
	id.seq = 77;
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 7 + len);
	memcpy(body + from->header, data, len);
	uint16_t ck = from->ops->seal(from, &id, body, len, &body_len);
	assert_true(body_len <= (size_t)from->header + len + from->trailer);
	assert_ok(to->ops->open(to, &id, ck, body, body_len, &off, &data_len));
	assert_int_equal(data_len, len);
	assert_memory_equal(body + off, data, len);
}

static void both_ends_agree_at_every_level(void **state)
{
	(void)state;
	static const uint8_t indices[] = {RX_SEC_RXGK, RX_SEC_YFS_RXGK};
	for (size_t e = 0; e < ARRAY_SIZE(etypes); e++)
		for (int level = 0; level <= RX_LEVEL_CRYPT; level++)
			for (int i = 0; i < 2; i++) {
				struct pair p;
				struct rx_caller who;
				pair_init(&p, etypes[e], (enum rx_sec_level)level, indices[i]);
				assert_ok(shake(&p, &who));
				assert_true(p.s->ready);
				assert_string_equal(who.name, "who");
				assert_string_equal(who.cell, "r.test");
				assert_int_equal(who.level, level);
				assert_int_equal(who.sec_class, indices[i]);
				assert_int_equal(p.s->expires, today + SEC(60));
				assert_int_equal(p.s->header, p.c->header);
				assert_int_equal(p.s->trailer, p.c->trailer);
				for (size_t len = 0; len < 70; len++) {
					there_and_back(&p, true, len);
					there_and_back(&p, false, len);
				}
				there_and_back(&p, true, 1400);
				assert_err(shake(&p, &who), AFS_EPROTOCOL);
				pair_fini(&p);
			}
}

static void many_are_sealed_as_one_by_one(void **state)
{
	(void)state;
	struct pair p;
	struct rx_caller who;
	enum { N = 150 };
	static uint8_t body[N][200];
	struct rx_sec_body b[N];
	pair_init(&p, 18, RX_LEVEL_CRYPT, RX_SEC_YFS_RXGK);
	assert_ok(shake(&p, &who));
	for (int i = 0; i < N; i++) {
		memset(body[i] + p.c->header, i, 100);
		b[i] = (struct rx_sec_body){.seq = (uint32_t)i + 1, .body = body[i], .data_len = 100};
	}
	p.c->ops->seal_many(p.c, &first_packet, b, N);
	for (int i = 0; i < N; i++) {
		struct rx_sec_packet id = first_packet;
		size_t off, len;
		id.seq = b[i].seq;
		assert_ok(p.s->ops->open(p.s, &id, b[i].cksum, body[i], b[i].body_len, &off, &len));
		assert_int_equal(len, 100);
		assert_int_equal(body[i][off], i);
	}
	pair_fini(&p);
}

static void a_changed_packet_is_refused(void **state)
{
	(void)state;
	for (size_t e = 0; e < ARRAY_SIZE(etypes); e++)
		for (int level = RX_LEVEL_AUTH; level <= RX_LEVEL_CRYPT; level++) {
			struct pair p;
			struct rx_caller who;
			uint8_t good[200] = {}, bad[200];
			size_t len, off, n;
			pair_init(&p, etypes[e], (enum rx_sec_level)level, RX_SEC_YFS_RXGK);
			assert_ok(shake(&p, &who));
			uint16_t ck = p.c->ops->seal(p.c, &first_packet, good, 40, &len);
			for (size_t at = 0; at < len; at++) {
				memcpy(bad, good, sizeof(bad));
				bad[at] ^= 4;
				assert_int_not_equal(p.s->ops->open(p.s, &first_packet, ck, bad, len, &off, &n), AFS_OK);
			}
			for (size_t cut = 0; cut < len; cut++) {
				memcpy(bad, good, sizeof(bad));
				assert_int_not_equal(p.s->ops->open(p.s, &first_packet, ck, bad, cut, &off, &n), AFS_OK);
			}
			struct rx_sec_packet others[4] = {first_packet, first_packet, first_packet, first_packet};
			others[0].call++, others[1].seq++, others[2].cid |= 1, others[3].epoch++;
			for (size_t i = 0; i < 4; i++) {
				memcpy(bad, good, sizeof(bad));
				assert_err(p.s->ops->open(p.s, &others[i], ck, bad, len, &off, &n), AFS_ESEALED);
			}
			memcpy(bad, good, sizeof(bad)); /* our own, sent back to us */
			assert_err(p.c->ops->open(p.c, &first_packet, ck, bad, len, &off, &n), AFS_ESEALED);
			pair_fini(&p);
		}
}

static void bad_responses_are_named_and_leave_no_trace(void **state)
{
	(void)state;
	struct pair p;
	struct rx_caller who;
	uint8_t challenge[64], good[2000], bad[2000];
	size_t n, len;
	pair_init(&p, 18, RX_LEVEL_CRYPT, RX_SEC_YFS_RXGK);
	assert_ok(p.s->ops->challenge(p.s, challenge, sizeof(challenge), &n));
	assert_err(p.c->ops->respond(p.c, &p.id, challenge, n - 1, good, sizeof(good), &len), AFS_EPACKETSHORT);
	assert_err(p.c->ops->respond(p.c, &p.id, challenge, n, good, 100, &len), AFS_ERANGE);
	assert_ok(p.c->ops->respond(p.c, &p.id, challenge, n, good, sizeof(good), &len));
	for (size_t cut = 0; cut < len; cut++)
		assert_err(p.s->ops->accept(p.s, &p.id, good, cut, today, &who), AFS_EPACKETSHORT);
	for (size_t at = 0; at < len; at++) {
		if (at >= 11 && at < 12 + 52)
			continue; /* the token, its length and its padding: the reader's matter */
		memcpy(bad, good, len);
		bad[at] ^= 1;
		if (p.s->ops->accept(p.s, &p.id, bad, len, today, &who) == AFS_OK)
			fail_msg("byte %zu changed, and accepted", at);
	}
	pair_fini(&p);

	static const struct {
		afs_err want;
		int what;
	} rows[] = {{AFS_EOUTOFSEQ, 0}, {AFS_ESEALED, 1}, {AFS_ESEALED, 2}, {AFS_ELEVEL, 3}, {AFS_ELEVEL, 4}, {AFS_EEXPIRED, 5},
		{AFS_EUNKNOWNKEY, 6}, {AFS_EWEAKKEY, 7}, {AFS_EBADTICKET, 8}, {AFS_ESEALED, 9}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rx_conn_id id;
		pair_init(&p, 18, RX_LEVEL_CRYPT, RX_SEC_YFS_RXGK);
		id = p.id;
		assert_ok(p.s->ops->challenge(p.s, challenge, sizeof(challenge), &n));
		if (rows[i].what == 0)
			challenge[3] ^= 1;
		assert_ok(p.c->ops->respond(p.c, &id, challenge, n, good, sizeof(good), &len));
		if (rows[i].what == 1)
			id.epoch++;
		if (rows[i].what == 2)
			id.cid += 4;
		if (rows[i].what == 3)
			p.reader.terms.level = RX_LEVEL_AUTH;
		if (rows[i].what == 4)
			p.server.least = RX_LEVEL_CRYPT + 1;
		if (rows[i].what == 5)
			p.reader.terms.expires = today;
		if (rows[i].what == 6)
			p.reader.err = AFS_EUNKNOWNKEY;
		if (rows[i].what == 7)
			p.reader.terms.etype = 23;
		if (rows[i].what == 8)
			p.reader.terms.level = (enum rx_sec_level)3;
		if (rows[i].what == 9)
			id.cksum = 1;
		assert_err(p.s->ops->accept(p.s, &id, good, len, today, &who), rows[i].want);
		assert_false(p.s->ready);
		pair_fini(&p);
	}
}

static uint16_t send_one(struct pair *p, struct rx_sec *from, struct rx_sec *to, mono_ns at)
{
	static uint8_t body[70000];
	struct rx_sec_packet id = first_packet;
	size_t len, off, n;
	id.from_client = from == p->c;
	id.at = at;
	uint16_t ck = from->ops->seal(from, &id, body, 65000, &len);
	assert_ok(to->ops->open(to, &id, ck, body, len, &off, &n));
	return ck;
}

static void keys_wear_out_with_bytes(void **state)
{
	(void)state;
	struct pair p;
	struct rx_caller who;
	pair_init(&p, 17, RX_LEVEL_CRYPT, RX_SEC_YFS_RXGK);
	rx_sec_free(p.c);
	p.reader.terms.bytelife = 10; /* but never under 4 MiB */
	p.c = client_of(&p, RX_SEC_YFS_RXGK);
	assert_ok(shake(&p, &who));
	uint16_t last = 0, changes = 0;
	for (int i = 0; i < 600; i++) {
		uint16_t ck = i % 3 ? send_one(&p, p.c, p.s, 1) : send_one(&p, p.s, p.c, 1);
		assert_true(ck == last || ck == last + 1);
		changes += ck != last;
		last = ck;
	}
	assert_in_range(changes, 8, 10);

	/* what was sealed with a key of a little while ago still opens; older and later ones do not */
	uint8_t body[200] = {}, again[200];
	size_t len, off, n;
	uint16_t old = p.c->ops->seal(p.c, &first_packet, body, 40, &len);
	memcpy(again, body, sizeof(body));
	while (send_one(&p, p.c, p.s, 1) != old + 2)
		;
	memcpy(again, body, sizeof(body));
	assert_ok(p.s->ops->open(p.s, &first_packet, old, again, len, &off, &n));
	while (send_one(&p, p.c, p.s, 1) != old + 3)
		;
	memcpy(again, body, sizeof(body));
	assert_err(p.s->ops->open(p.s, &first_packet, old, again, len, &off, &n), AFS_EUNKNOWNKEY);
	assert_err(p.s->ops->open(p.s, &first_packet, (uint16_t)(old + 5), again, len, &off, &n), AFS_EUNKNOWNKEY);
	/* a stranger's packet of the next key changes nothing */
	memcpy(again, body, sizeof(body));
	assert_err(p.s->ops->open(p.s, &first_packet, (uint16_t)(old + 4), again, len, &off, &n), AFS_ESEALED);
	assert_int_equal(send_one(&p, p.s, p.c, 1), old + 3);
	pair_fini(&p);
}

static void keys_wear_out_with_time(void **state)
{
	(void)state;
	struct pair p;
	struct rx_caller who;
	pair_init(&p, 18, RX_LEVEL_AUTH, RX_SEC_RXGK);
	rx_sec_free(p.c);
	p.reader.terms.lifetime = 100;
	p.c = client_of(&p, RX_SEC_RXGK);
	assert_ok(shake(&p, &who));
	assert_int_equal(send_one(&p, p.c, p.s, SEC(10)), 0);
	assert_int_equal(send_one(&p, p.c, p.s, SEC(109)), 0);
	assert_int_equal(send_one(&p, p.c, p.s, SEC(111)), 0);
	assert_int_equal(send_one(&p, p.c, p.s, SEC(112)), 1);
	assert_int_equal(send_one(&p, p.s, p.c, SEC(112)), 1);
	pair_fini(&p);
}

struct crowd {
	struct pair *p;
	_Atomic int bad;
};

static void *seal_and_open(void *arg)
{
	struct crowd *c = arg;
	static _Thread_local uint8_t body[70000];
	for (int i = 0; i < 300; i++) {
		struct rx_sec_packet id = first_packet;
		size_t len, off, n;
		id.seq = (uint32_t)i;
		uint16_t ck = c->p->c->ops->seal(c->p->c, &id, body, 60000, &len);
		if (c->p->s->ops->open(c->p->s, &id, ck, body, len, &off, &n) != AFS_OK || n != 60000)
			c->bad++;
	}
	return NULL;
}

static void threads_share_a_connection(void **state)
{
	(void)state;
	struct pair p;
	struct rx_caller who;
	pair_init(&p, 18, RX_LEVEL_CRYPT, RX_SEC_YFS_RXGK);
	rx_sec_free(p.c);
	p.reader.terms.bytelife = 26; /* one change or two: a thread may sleep through them between seal and open */
	p.c = client_of(&p, RX_SEC_YFS_RXGK);
	assert_ok(shake(&p, &who));
	struct crowd c = {.p = &p};
	pthread_t t[6];
	for (int i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&t[i], NULL, seal_and_open, &c), 0);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(c.bad, 0);
	pair_fini(&p);
}

static void memory_may_fail(void **state)
{
	(void)state;
	for (long n = 0;; n++) {
		struct pair p;
		struct rx_caller who;
		pair_init(&p, 18, RX_LEVEL_CRYPT, RX_SEC_YFS_RXGK);
		struct rx_sec *c;
		afs_err err = AFS_ENOMEM;
		mem_fail_after(n);
		c = p.c->ops->clone(p.c);
		if (c) {
			c->ops->bind(c, &p.id);
			uint8_t challenge[64], response[RX_RESPONSE_MAX], body[200];
			size_t len;
			assert_ok(p.s->ops->challenge(p.s, challenge, sizeof(challenge), &len));
			memset(body, 0x55, sizeof(body));
			c->ops->seal(c, &first_packet, body, 40, &len);
			for (size_t at = 0; !c->ready && at < 40; at++)
				assert_int_equal(body[at], 0);
			err = c->ops->respond(c, &p.id, challenge, RXGK_NONCE, response, sizeof(response), &len);
			if (err == AFS_OK)
				err = p.s->ops->accept(p.s, &p.id, response, len, today, &who);
		}
		const bool failed = mem_has_failed();
		mem_fail_after(-1);
		rx_sec_free(c);
		pair_fini(&p);
		assert_true(failed || err == AFS_OK);
		if (!failed)
			return;
	}
}

static void bad_responses_cost_no_memory(void **state)
{
	(void)state;
	struct pair p;
	struct rx_caller who;
	uint8_t challenge[64], response[2000];
	size_t n, len, before = 0;
	pair_init(&p, 18, RX_LEVEL_CRYPT, RX_SEC_YFS_RXGK);
	assert_ok(p.s->ops->challenge(p.s, challenge, sizeof(challenge), &n));
	assert_ok(p.c->ops->respond(p.c, &p.id, challenge, n, response, sizeof(response), &len));
	response[len - 1] ^= 1;
	for (int i = 0; i < 3000; i++) {
		assert_err(p.s->ops->accept(p.s, &p.id, response, len, today, &who), AFS_ESEALED);
		if (i == 100)
			before = mallinfo2().uordblks;
	}
	assert_true(mallinfo2().uordblks <= before + 4096);
	pair_fini(&p);
}

static void odd_arguments_are_refused(void **state)
{
	(void)state;
	struct rxgk_token token = {.terms = {.etype = 18, .level = RX_LEVEL_CRYPT}, .token = (const uint8_t *)"t", .len = 1};
	const struct rxgk_random random = {.fill = counted};
	const struct rxgk_server server = {.random = random};
	assert_null(rxgk_client_new(&token, RX_SEC_RXKAD, 1, &random));
	assert_null(rxgk_server_new(&server, 5));
	token.terms.etype = 1;
	assert_null(rxgk_client_new(&token, RX_SEC_RXGK, 1, &random));
	token.terms.etype = 18;
	token.terms.level = (enum rx_sec_level)3;
	assert_null(rxgk_client_new(&token, RX_SEC_RXGK, 1, &random));
	token.terms.level = RX_LEVEL_CRYPT;
	token.len = RXGK_TOKEN_MAX + 1;
	assert_null(rxgk_client_new(&token, RX_SEC_RXGK, 1, &random));
	/* the two dialects number their errors differently */
	assert_int_equal(rx_gk_code(RX_SEC_RXGK, AFS_ESEALED), 1233242880 + 9);
	assert_int_equal(rx_gk_code(RX_SEC_YFS_RXGK, AFS_ESEALED), 1233242880 + 3);
	assert_int_equal(rx_gk_code(RX_SEC_YFS_RXGK, AFS_ENOENT), 0);
	assert_int_equal(rx_sec_err(1233242880 + 5), AFS_EEXPIRED);
}

TEST_MAIN(T(vectors), T(both_ends_agree_at_every_level), T(many_are_sealed_as_one_by_one),
	T(a_changed_packet_is_refused), T(bad_responses_are_named_and_leave_no_trace), T(keys_wear_out_with_bytes),
	T(keys_wear_out_with_time), T(threads_share_a_connection), T(memory_may_fail), T(bad_responses_cost_no_memory),
	T(odd_arguments_are_refused))
