/* SPDX-License-Identifier: BSD-2-Clause
 * Both ends of rxkad against captured exchanges, against each other, and against bad bytes. */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "rx/sec/rxkad_conn.h"

#include <malloc.h>
#include <string.h>

static const char file[] = "sec/exchange";

/* A ticket reader that takes the ticket whose bytes it was told, as "who" of realm R.TEST. */
struct reader {
	uint8_t session[8];
	afs_err err;
	unsigned calls;
	size_t ticket_len;
	int32_t kvno;
};

static afs_err read_ticket(void *ctx, int32_t kvno, const uint8_t *ticket, size_t len, wall_ns now,
	struct rxkad_ticket *out)
{
	struct reader *r = ctx;
	(void)ticket;
	r->calls++;
	r->kvno = kvno;
	r->ticket_len = len;
	if (r->err)
		return r->err;
	memcpy(out->session_key, r->session, 8);
	strcpy(out->name, "who");
	strcpy(out->cell, "R.TEST");
	out->expires = now + SEC(60);
	return AFS_OK;
}

static uint32_t fixed_random(void *ctx) { return *(uint32_t *)ctx; }

struct pair {
	struct reader reader;
	struct rxkad_server server;
	uint32_t nonce;
	struct rx_conn_id id;
	struct rx_sec *c, *s;
};

static void pair_init(struct pair *p, enum rx_sec_level level, uint8_t index)
{
	static uint8_t ticket[40] = {7};
	*p = (struct pair){.nonce = 0xffffffff,
		.id = {.epoch = 0x9a0b0c0d,
			.cid = 0x12345670,
			.service = 73,
			.index = index,
			.call_numbers = {1, 0, 7, 0x7fffffff}}};
	test_vector(file, "own.session", p->reader.session, 8);
	p->server = (struct rxkad_server){.read_ticket = read_ticket,
		.ctx = &p->reader,
		.random = fixed_random,
		.random_ctx = &p->nonce};
	struct rxkad_token token = {.kvno = 256, .ticket = ticket, .ticket_len = sizeof(ticket)};
	memcpy(token.session_key, p->reader.session, 8);
	p->c = rxkad_client_new(&token, level);
	p->s = rxkad_server_new(&p->server, index);
	assert_non_null(p->c);
	assert_non_null(p->s);
	p->c->ops->bind(p->c, &p->id);
	p->s->ops->bind(p->s, &p->id);
}

static void pair_fini(struct pair *p)
{
	rx_sec_free(p->c);
	rx_sec_free(p->s);
}

static size_t respond(struct pair *p, uint8_t *out, size_t cap)
{
	uint8_t challenge[16];
	size_t n, len;
	assert_ok(p->s->ops->challenge(p->s, challenge, sizeof(challenge), &n));
	assert_int_equal(n, 16);
	assert_ok(p->c->ops->respond(p->c, &p->id, challenge, n, out, cap, &len));
	return len;
}

static void handshake(struct pair *p)
{
	uint8_t r[256];
	struct rx_caller who;
	size_t n = respond(p, r, sizeof(r));
	assert_ok(p->s->ops->accept(p->s, &p->id, r, n, SEC(1000), &who));
}

/* --- captured bytes ---------------------------------------------------------------------- */

static void captured_bodies_seal_and_open_at_every_level(void **state)
{
	(void)state;
	static const struct {
		enum rx_sec_level level;
		uint32_t cid;
		uint16_t cksum;
		const char *body, *data, *reply, *reply_data;
	} rows[] = {
		{RX_LEVEL_CRYPT, 0x12345670, 0x86e9, "own.request.body", "own.request.data",
			"own.reply.body", "own.reply.data"},
		{RX_LEVEL_AUTH, 0x12345680, 0x1887, "auth.request.body", "own.request.data",
			"auth.reply.body", "own.reply.data"},
		{RX_LEVEL_CLEAR, 0x12345690, 0x5dc8, "own.request.data", "own.request.data",
			"own.reply.data", "own.reply.data"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pair p;
		pair_init(&p, rows[i].level, 2);
		p.id.cid = rows[i].cid;
		p.c->ops->bind(p.c, &p.id);
		struct rx_sec_packet pkt = {p.id.epoch, p.id.cid, 1, 1, true, 0};
		uint8_t body[64], want[64];
		size_t n = test_vector(file, rows[i].data, body + p.c->header, 32), len, off;
		assert_int_equal(p.c->ops->seal(p.c, &pkt, body, n, &len), rows[i].cksum);
		assert_int_equal(test_vector(file, rows[i].body, want, sizeof(want)), len);
		assert_memory_equal(body, want, len);

		n = test_vector(file, rows[i].reply, body, sizeof(body));
		pkt.from_client = false;
		assert_ok(p.c->ops->open(p.c, &pkt, rows[i].cksum, body, n, &off, &len));
		assert_int_equal(test_vector(file, rows[i].reply_data, want, sizeof(want)), len);
		assert_memory_equal(body + off, want, len);
		pair_fini(&p);
	}
}

static void the_checksum_depends_on_call_channel_and_sequence(void **state)
{
	(void)state;
	static const struct {
		uint32_t channel, call, seq;
		uint16_t cksum;
	} rows[] = {{0, 1, 1, 0x86e9}, {0, 1, 2, 0x0931}, {1, 1, 1, 0x4656}, {3, 7, 40, 0x93f1}};
	struct pair p;
	pair_init(&p, RX_LEVEL_CLEAR, 2);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rx_sec_packet pkt = {
			p.id.epoch, p.id.cid | rows[i].channel, rows[i].call, rows[i].seq, true, 0};
		size_t len, off;
		uint8_t b[4];
		assert_int_equal(p.c->ops->seal(p.c, &pkt, b, 4, &len), rows[i].cksum);
		pkt.from_client = false;
		assert_ok(p.c->ops->open(p.c, &pkt, rows[i].cksum, b, 4, &off, &len));
		assert_err(p.c->ops->open(p.c, &pkt, rows[i].cksum ^ 1, b, 4, &off, &len),
			AFS_ESEALED);
		assert_err(p.c->ops->open(p.c, &pkt, 0, b, 4, &off, &len), AFS_ESEALED);
	}
	pair_fini(&p);
}

static void the_preseq_of_both_captures_is_found_again(void **state)
{
	(void)state;
	struct {
		const char *session, *preseq;
		uint32_t epoch, cid;
	} rows[] = {{"pts.session", "pts.preseq", 0x9b55764c, 0x7aee6510},
		{"own.session", "own.preseq", 0x9a0b0c0d, 0x12345672},
		{"own.session", "auth.preseq", 0x9a0b0c0d, 0x12345683}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rxkad k = {};
		uint8_t session[8], want[8], got[8];
		test_vector(file, rows[i].session, session, 8);
		test_vector(file, rows[i].preseq, want, 8);
		rxkad_set_session(&k, session);
		rxkad_set_preseq(&k, rows[i].epoch, rows[i].cid, 2);
		rxkad_put32(got, k.preseq[0]);
		rxkad_put32(got + 4, k.preseq[1]);
		assert_memory_equal(got, want, 8);
	}
}

static void our_response_is_byte_for_byte_the_captured_one(void **state)
{
	(void)state;
	static const struct {
		const char *session, *challenge, *response;
		uint32_t epoch, cid;
	} rows[] = {
		{"own.session", "own.challenge", "own.response", 0x9a0b0c0d, 0x12345670},
		{"pts.session", "pts.challenge", "pts.response", 0x9b55764c, 0x7aee6510},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t want[600], got[600], challenge[16];
		size_t n = test_vector(file, rows[i].response, want, sizeof(want)), len;
		struct rxkad_token token = {.kvno = (int32_t)rxkad_get32(want + 48),
			.ticket = want + 56,
			.ticket_len = n - 56};
		test_vector(file, rows[i].session, token.session_key, 8);
		test_vector(file, rows[i].challenge, challenge, 16);
		struct rx_sec *c = rxkad_client_new(&token, RX_LEVEL_CRYPT);
		struct rx_conn_id id = {.epoch = rows[i].epoch,
			.cid = rows[i].cid,
			.index = 2,
			.call_numbers = {1}};
		c->ops->bind(c, &id);
		assert_ok(c->ops->respond(c, &id, challenge, 16, got, sizeof(got), &len));
		assert_int_equal(len, n);
		assert_memory_equal(got, want, n);
		rx_sec_free(c);
	}
}

static void a_captured_response_of_a_stock_tool_is_accepted(void **state)
{
	(void)state;
	uint8_t r[600], body[64], want[8];
	size_t n = test_vector(file, "pts.response", r, sizeof(r)), off, len;
	struct reader reader = {};
	uint32_t nonce = 0xa93f4137;
	test_vector(file, "pts.session", reader.session, 8);
	struct rxkad_server server = {.read_ticket = read_ticket,
		.ctx = &reader,
		.random = fixed_random,
		.random_ctx = &nonce};
	struct rx_sec *s = rxkad_server_new(&server, 2);
	struct rx_conn_id id = {.epoch = 0x9b55764c, .cid = 0x7aee6510, .index = 2};
	struct rx_caller who;
	assert_ok(s->ops->accept(s, &id, r, n, SEC(1000), &who));
	assert_int_equal(reader.kvno, 213);
	assert_int_equal(reader.ticket_len, 0x9a);
	assert_int_equal(id.call_numbers[0], 1);
	assert_int_equal(id.call_numbers[1], 0);
	assert_int_equal(who.level, RX_LEVEL_CRYPT);
	assert_true(who.authenticated);
	assert_string_equal(who.name, "who");
	assert_string_equal(who.cell, "R.TEST");
	assert_int_equal(who.expires, SEC(1060));
	assert_int_equal(s->expires, SEC(1060));

	/* the request that waited for it, and stock's reply with its unclean padding */
	struct rx_sec_packet pkt = {id.epoch, id.cid, 1, 1, true, 0};
	n = test_vector(file, "pts.request.body", body, sizeof(body));
	assert_ok(s->ops->open(s, &pkt, 0x47f6, body, n, &off, &len));
	n = test_vector(file, "pts.reply.body", body, sizeof(body));
	assert_ok(s->ops->open(s, &pkt, 0x47f6, body, n, &off, &len));
	assert_int_equal(test_vector(file, "pts.reply.data", want, 8), len);
	assert_memory_equal(body + off, want, len);
	rx_sec_free(s);
}

/* --- both ends --------------------------------------------------------------------------- */

static void what_one_end_seals_the_other_opens(void **state)
{
	(void)state;
	for (enum rx_sec_level level = RX_LEVEL_CLEAR; level <= RX_LEVEL_CRYPT; level++) {
		struct pair p;
		pair_init(&p, level, 2);
		handshake(&p);
		assert_int_equal(p.s->header, p.c->header);
		assert_int_equal(p.s->trailer, p.c->trailer);
		for (size_t n = 0; n < 70; n++) {
			uint8_t body[128], plain[128];
			memset(body, 0xee, sizeof(body));
			for (size_t i = 0; i < n; i++)
				body[p.c->header + i] = plain[i] = (uint8_t)(i * 7 + n);
			struct rx_sec_packet pkt = {
				p.id.epoch, p.id.cid | 2, 9, (uint32_t)n + 65530, true, 0};
			size_t len, off, got;
			uint16_t ck = p.c->ops->seal(p.c, &pkt, body, n, &len);
			assert_true(len <= p.c->header + n + p.c->trailer);
			assert_int_equal(body[len], 0xee);
			assert_ok(p.s->ops->open(p.s, &pkt, ck, body, len, &off, &got));
			assert_int_equal(got, n);
			assert_memory_equal(body + off, plain, n);
		}
		pair_fini(&p);
	}
}

static void a_clone_of_a_client_in_use_serves_a_connection_of_its_own(void **state)
{
	(void)state;
	struct pair p;
	uint8_t r[256], again[256];
	struct rx_caller who;
	pair_init(&p, RX_LEVEL_AUTH, 2);
	handshake(&p);
	struct rx_sec *c = p.c->ops->clone(p.c), *s = rxkad_server_new(&p.server, 2);
	struct rx_conn_id id = {.epoch = 0x9a0b0c0d, .cid = 0x55555550, .index = 2};
	assert_non_null(c);
	assert_true(c != p.c && c->ready && c->header == p.c->header && c->expires == p.c->expires);
	c->ops->bind(c, &id);
	uint8_t challenge[16];
	size_t n, len;
	assert_ok(s->ops->challenge(s, challenge, sizeof(challenge), &n));
	assert_ok(c->ops->respond(c, &id, challenge, n, r, sizeof(r), &len));
	rx_sec_free(p.c); /* it lives without the one it was made of */
	p.c = NULL;
	assert_ok(c->ops->respond(c, &id, challenge, n, again, sizeof(again), &len));
	assert_memory_equal(r, again, len);
	assert_ok(s->ops->accept(s, &id, again, len, SEC(1), &who));
	assert_int_equal(who.level, RX_LEVEL_AUTH);
	assert_null(s->ops->clone(s));
	assert_ptr_equal(rx_null_new()->ops->clone(rx_null_new()), rx_null_new());
	rx_sec_free(c);
	rx_sec_free(s);
	pair_fini(&p);
}

static void several_packets_seal_at_once_as_one_by_one(void **state)
{
	(void)state;
	enum { N = 71, ROOM = 200 };
	static uint8_t one[N][ROOM], all[N][ROOM];
	for (enum rx_sec_level level = RX_LEVEL_CLEAR; level <= RX_LEVEL_CRYPT; level++) {
		struct pair p;
		pair_init(&p, level, 2);
		handshake(&p);
		struct rx_sec_body b[N];
		for (uint32_t i = 0; i < N; i++) {
			size_t n = i * 37 % 180;
			for (size_t j = 0; j < ROOM; j++)
				one[i][j] = all[i][j] = (uint8_t)(i + j);
			b[i] = (struct rx_sec_body){.seq = i + 5, .body = all[i], .data_len = n};
		}
		struct rx_sec_packet pkt = {p.id.epoch, p.id.cid | 1, 3, 0, false, 0};
		p.s->ops->seal_many(p.s, &pkt, b, N);
		for (uint32_t i = 0; i < N; i++) {
			size_t len;
			pkt.seq = i + 5;
			assert_int_equal(
				p.s->ops->seal(p.s, &pkt, one[i], b[i].data_len, &len), b[i].cksum);
			assert_int_equal(len, b[i].body_len);
			assert_memory_equal(one[i], all[i], ROOM);
		}
		pair_fini(&p);
	}
}

static void index_3_demands_crypt_and_enters_the_checksums(void **state)
{
	(void)state;
	struct pair p;
	uint8_t challenge[16], r[256];
	size_t n, len;
	pair_init(&p, RX_LEVEL_CRYPT, 3);
	handshake(&p);
	pair_fini(&p);

	pair_init(&p, RX_LEVEL_AUTH, 3);
	assert_ok(p.s->ops->challenge(p.s, challenge, 16, &n));
	assert_int_equal(rxkad_get32(challenge + 8), RX_LEVEL_CRYPT);
	assert_err(p.c->ops->respond(p.c, &p.id, challenge, n, r, sizeof(r), &len), AFS_ELEVEL);
	pair_fini(&p);
	assert_null(rxkad_server_new(&p.server, 4));
}

static void a_client_refuses_a_challenge_that_is_short_old_or_too_demanding(void **state)
{
	(void)state;
	struct pair p;
	uint8_t r[256], ch[20] = {0, 0, 0, 2, 1, 2, 3, 4, 0, 0, 0, 1, 0, 0, 0, 0};
	size_t len;
	pair_init(&p, RX_LEVEL_AUTH, 2);
	for (size_t n = 0; n < 16; n++)
		assert_err(
			p.c->ops->respond(p.c, &p.id, ch, n, r, sizeof(r), &len), AFS_EPACKETSHORT);
	assert_ok(p.c->ops->respond(
		p.c, &p.id, ch, 20, r, sizeof(r), &len)); /* trailing bytes are tolerated */
	ch[11] = 2;
	assert_err(p.c->ops->respond(p.c, &p.id, ch, 16, r, sizeof(r), &len), AFS_ELEVEL);
	ch[8] = 0x80;
	assert_err(p.c->ops->respond(p.c, &p.id, ch, 16, r, sizeof(r), &len), AFS_ELEVEL);
	ch[8] = 0, ch[11] = 0, ch[3] = 1;
	assert_err(p.c->ops->respond(p.c, &p.id, ch, 16, r, sizeof(r), &len), AFS_ESECPROTO);
	ch[3] = 2;
	p.id.call_numbers[2] = 0x80000000;
	assert_err(p.c->ops->respond(p.c, &p.id, ch, 16, r, sizeof(r), &len), AFS_ESECPROTO);
	p.id.call_numbers[2] = 0;
	assert_err(p.c->ops->respond(p.c, &p.id, ch, 16, r, 56 + 39, &len), AFS_ERANGE);
	pair_fini(&p);
}

static void tickets_of_impossible_length_make_no_client(void **state)
{
	(void)state;
	static uint8_t t[12001];
	struct rxkad_token token = {.kvno = 256, .ticket = t, .ticket_len = 31};
	assert_null(rxkad_client_new(&token, RX_LEVEL_CLEAR));
	token.ticket_len = 12001;
	assert_null(rxkad_client_new(&token, RX_LEVEL_CLEAR));
	token.ticket_len = 12000;
	assert_null(rxkad_client_new(&token, (enum rx_sec_level)3));
	struct rx_sec *c = rxkad_client_new(&token, RX_LEVEL_CLEAR);
	assert_non_null(c);
	rx_sec_free(c);
}

static void a_ready_server_ignores_another_response(void **state)
{
	(void)state;
	struct pair p;
	uint8_t r[256];
	struct rx_caller who;
	pair_init(&p, RX_LEVEL_CLEAR, 2);
	size_t n = respond(&p, r, sizeof(r));
	assert_ok(p.s->ops->accept(p.s, &p.id, r, n, SEC(1), &who));
	assert_err(p.s->ops->accept(p.s, &p.id, r, n, SEC(1), &who), AFS_EPROTOCOL);
	assert_int_equal(p.reader.calls, 1);
	pair_fini(&p);
}

/* --- bad bytes --------------------------------------------------------------------------- */

static afs_err offer(struct pair *p, const uint8_t *r, size_t n)
{
	/* an allocation of its own, so that a sanitizer sees a read past it */
	CLEANUP(heap) uint8_t *copy = mem_alloc(n + 1, 1);
	CLEANUP(heap) uint8_t *exact = mem_alloc(n ? n : 1, 1);
	struct rx_caller who = {};
	memcpy(exact, r, n);
	memcpy(copy, r, n);
	afs_err err = p->s->ops->accept(p->s, &p->id, exact, n, SEC(1), &who);
	assert_memory_equal(copy, exact, n);
	if (err != AFS_OK) {
		assert_false(p->s->ready);
		assert_false(who.authenticated);
		assert_int_equal(p->s->header, 0);
	}
	return err;
}

static void every_truncation_of_a_response_is_refused(void **state)
{
	(void)state;
	struct pair p;
	uint8_t r[256];
	pair_init(&p, RX_LEVEL_CRYPT, 2);
	size_t n = respond(&p, r, sizeof(r));
	for (size_t cut = 0; cut < n; cut++)
		assert_err(offer(&p, r, cut), AFS_EPACKETSHORT);
	assert_int_equal(p.reader.calls, 0);
	assert_ok(offer(&p, r, n + 8)); /* bytes after the ticket are tolerated */
	pair_fini(&p);
}

static void a_wrong_length_of_ticket_is_refused_before_it_is_read(void **state)
{
	(void)state;
	static const struct {
		uint32_t len;
		afs_err err;
	} rows[] = {{0, AFS_ETICKETLEN}, {31, AFS_ETICKETLEN}, {41, AFS_EPACKETSHORT},
		{12001, AFS_EPACKETSHORT}, {0x7fffffff, AFS_EPACKETSHORT},
		{0xffffffc8, AFS_EPACKETSHORT}, {0xffffffff, AFS_EPACKETSHORT}};
	struct pair p;
	static uint8_t r[56 + 12001];
	pair_init(&p, RX_LEVEL_CRYPT, 2);
	size_t n = respond(&p, r, 256);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		rxkad_put32(r + 52, rows[i].len);
		assert_err(offer(&p, r, n), rows[i].err);
	}
	rxkad_put32(r + 52, 12001);
	assert_err(offer(&p, r, sizeof(r)), AFS_ETICKETLEN);
	assert_int_equal(p.reader.calls, 0);
	pair_fini(&p);
}

/* Makes a response whose sealed words are as given, with a right checksum unless told otherwise. */
static size_t forge(struct pair *p, uint8_t *r, size_t cap, int word, uint32_t value)
{
	size_t n = respond(p, r, cap);
	struct fcrypt_key k;
	fcrypt_schedule(&k, p->reader.session);
	fcrypt_pcbc_decrypt(&k, p->reader.session, r + 8, 40);
	rxkad_put32(r + 8 + 4 * word, value);
	if (word != 2) {
		uint32_t h = 1000003;
		rxkad_put32(r + 16, 0);
		for (int i = 0; i < 56; i++)
			h = r[i] + h * 0x10204081u;
		rxkad_put32(r + 16, h);
	}
	fcrypt_pcbc_encrypt(&k, p->reader.session, r + 8, 40);
	return n;
}

static void each_wrong_word_of_a_response_gets_its_error(void **state)
{
	(void)state;
	static const struct {
		int word;
		uint32_t value;
		afs_err err;
	} rows[] = {
		{0, 0x9a0b0c0c, AFS_ESEALED}, /* epoch */
		{1, 0x12345674, AFS_ESEALED}, /* cid */
		{2, 0, AFS_ESEALED},          /* checksum */
		{3, 3, AFS_ESEALED},          /* security index */
		{4, 0x80000000, AFS_ESEALED}, /* call numbers */
		{5, 0xffffffff, AFS_ESEALED},
		{6, 0x80000001, AFS_ESEALED},
		{7, 0x80000000, AFS_ESEALED},
		{8, 1, AFS_EOUTOFSEQ}, /* nonce + 1, which wraps to 0 here */
		{8, 0xffffffff, AFS_EOUTOFSEQ},
		{9, 0, AFS_ELEVEL}, /* below what the challenge demanded */
		{9, 3, AFS_ELEVEL},
		{9, 0xffffffff, AFS_ELEVEL},
	};
	struct pair p;
	uint8_t r[256];
	pair_init(&p, RX_LEVEL_CRYPT, 2);
	p.server.least = RX_LEVEL_AUTH;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n = forge(&p, r, sizeof(r), rows[i].word, rows[i].value);
		assert_err(offer(&p, r, n), rows[i].err);
	}
	size_t n = forge(&p, r, sizeof(r), 9, RX_LEVEL_AUTH);
	assert_ok(offer(&p, r, n));
	assert_int_equal(p.s->header, 4);
	pair_fini(&p);
}

static void any_flipped_bit_in_front_of_the_ticket_is_noticed(void **state)
{
	(void)state;
	struct pair p;
	uint8_t r[256];
	pair_init(&p, RX_LEVEL_CRYPT, 2);
	size_t n = respond(&p, r, sizeof(r));
	for (size_t bit = 0; bit < 52 * 8; bit++) {
		r[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_err(offer(&p, r, n), AFS_ESEALED);
		r[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_ok(offer(&p, r, n));
	pair_fini(&p);
}

static void the_ticket_readers_errors_reach_the_peer_unchanged(void **state)
{
	(void)state;
	static const struct {
		afs_err err;
		int32_t code;
	} rows[] = {{AFS_ESECPROTO, 19270400}, {AFS_EPACKETSHORT, 19270401}, {AFS_ELEVEL, 19270402},
		{AFS_ETICKETLEN, 19270403}, {AFS_EOUTOFSEQ, 19270404}, {AFS_ENOAUTH, 19270405},
		{AFS_EBADTICKET, 19270407}, {AFS_EUNKNOWNKEY, 19270408}, {AFS_EEXPIRED, 19270409},
		{AFS_ESEALED, 19270410}, {AFS_EDATALEN, 19270411}};
	struct pair p;
	uint8_t r[256];
	pair_init(&p, RX_LEVEL_CRYPT, 2);
	size_t n = respond(&p, r, sizeof(r));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		p.reader.err = rows[i].err;
		assert_err(offer(&p, r, n), rows[i].err);
		assert_int_equal(rx_sec_code(rows[i].err), rows[i].code);
		assert_int_equal(rx_sec_err(rows[i].code), rows[i].err);
	}
	assert_int_equal(rx_sec_code(AFS_ENOENT), 0);
	assert_int_equal(rx_sec_err(19270406), AFS_EBADTICKET);
	assert_int_equal(rx_sec_err(19270412), AFS_ELEVEL);
	assert_int_equal(rx_sec_err(19270399), AFS_OK);
	assert_int_equal(rx_sec_err(19270413), AFS_OK);
	pair_fini(&p);
}

static void a_hundred_thousand_bad_responses_leave_no_memory_behind(void **state)
{
	(void)state;
	enum { TIMES = 100000 };
	struct pair p;
	uint8_t r[256];
	struct rx_caller who;
	pair_init(&p, RX_LEVEL_CRYPT, 2);
	size_t n = respond(&p, r, sizeof(r));
	size_t before = mallinfo2().uordblks;
	for (uint32_t i = 0; i < TIMES; i++) {
		r[8 + i % 44] ^= (uint8_t)(1 + i % 255);
		assert_true(p.s->ops->accept(p.s, &p.id, r, n - i % 3, SEC(1), &who) != AFS_OK);
		r[8 + i % 44] ^= (uint8_t)(1 + i % 255);
	}
	assert_int_equal(mallinfo2().uordblks, before);
	pair_fini(&p);
}

static void a_sealed_body_that_was_changed_is_refused(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, RX_LEVEL_CRYPT, 2);
	handshake(&p);
	struct rx_sec_packet pkt = {p.id.epoch, p.id.cid, 1, 1, true, 0};
	uint8_t sealed[64] = {}, b[64];
	size_t len, off, n;
	uint16_t ck = p.c->ops->seal(p.c, &pkt, sealed, 20, &len);
	assert_int_equal(len, 32);

	for (size_t cut = 0; cut < len; cut++) {
		memcpy(b, sealed, sizeof(b));
		afs_err err = p.s->ops->open(p.s, &pkt, ck, b, cut, &off, &n);
		assert_int_equal(err, cut % 8 || !cut ? AFS_ESEALED : AFS_EDATALEN);
	}
	for (uint32_t bit = 0; bit < 64;
		bit++) { /* first block: length or order goes wrong, or the text */
		memcpy(b, sealed, sizeof(b));
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		afs_err err = p.s->ops->open(p.s, &pkt, ck, b, len, &off, &n);
		if (err == AFS_OK)
			assert_true(off == 8 && n <= len - 8);
	}
	pkt.seq = 2;
	memcpy(b, sealed, sizeof(b));
	assert_err(p.s->ops->open(p.s, &pkt, ck, b, len, &off, &n), AFS_ESEALED);
	pair_fini(&p);
}

/* The length in the sealed word, against bodies that are too short for it. */
static void a_length_beyond_the_body_is_refused(void **state)
{
	(void)state;
	for (enum rx_sec_level level = RX_LEVEL_AUTH; level <= RX_LEVEL_CRYPT; level++) {
		struct pair p;
		pair_init(&p, level, 2);
		handshake(&p);
		struct rx_sec_packet pkt = {p.id.epoch, p.id.cid, 1, 1, true, 0};
		static const uint32_t lengths[] = {0, 8, 9, 15, 16, 17, 24, 0xffff};
		for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
			const struct rxkad *k = container_of(p.c, struct rxkad, sec);
			uint8_t b[24] = {};
			size_t room = sizeof(b) - p.c->header, off, n, len;
			uint8_t none[8];
			rxkad_put32(b, lengths[i]); /* (seq ^ call) is 0 */
			if (level == RX_LEVEL_CRYPT)
				fcrypt_pcbc_encrypt(&k->key, k->session, b, sizeof(b));
			else
				fcrypt_encrypt(&k->key, b);
			uint16_t ck = p.c->ops->seal(p.c, &pkt, none, 0, &len);
			afs_err err = p.s->ops->open(p.s, &pkt, ck, b, sizeof(b), &off, &n);
			assert_err(err, lengths[i] <= room ? AFS_OK : AFS_EDATALEN);
		}
		pair_fini(&p);
	}
}

static void an_unready_server_opens_nothing(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, RX_LEVEL_CLEAR, 2);
	struct rx_sec_packet pkt = {p.id.epoch, p.id.cid, 1, 1, true, 0};
	uint8_t b[8] = {};
	size_t off, n;
	for (uint32_t ck = 0; ck <= 0xffff; ck++)
		assert_err(p.s->ops->open(p.s, &pkt, (uint16_t)ck, b, 8, &off, &n), AFS_ESEALED);
	pair_fini(&p);
}

static void rxnull_passes_everything_and_answers_no_challenge(void **state)
{
	(void)state;
	struct rx_sec *s = rx_null_new();
	struct rx_sec_packet pkt = {};
	struct rx_conn_id id = {};
	uint8_t b[8] = {1, 2}, out[32];
	size_t len, off;
	assert_true(s->ready);
	assert_int_equal(s->ops->seal(s, &pkt, b, 8, &len), 0);
	assert_int_equal(len, 8);
	assert_ok(s->ops->open(s, &pkt, 0x1234, b, 8, &off, &len));
	assert_int_equal(off, 0);
	assert_int_equal(len, 8);
	assert_err(s->ops->respond(s, &id, b, 8, out, sizeof(out), &len), AFS_ESECPROTO);
	rx_sec_free(s);
}

static void memory_that_runs_out_makes_no_object(void **state)
{
	(void)state;
	static uint8_t t[40];
	struct rxkad_token token = {.kvno = 256, .ticket = t, .ticket_len = sizeof(t)};
	uint32_t nonce = 1;
	struct rxkad_server server = {.random = fixed_random, .random_ctx = &nonce};
	for (long n = 0; n < 2; n++) {
		mem_fail_after(n);
		struct rx_sec *c = rxkad_client_new(&token, RX_LEVEL_CLEAR);
		mem_fail_after(-1);
		assert_null(c);
	}
	mem_fail_after(0);
	struct rx_sec *s = rxkad_server_new(&server, 2);
	mem_fail_after(-1);
	assert_null(s);
}

TEST_MAIN(T(captured_bodies_seal_and_open_at_every_level),
	T(the_checksum_depends_on_call_channel_and_sequence),
	T(the_preseq_of_both_captures_is_found_again),
	T(our_response_is_byte_for_byte_the_captured_one),
	T(a_captured_response_of_a_stock_tool_is_accepted), T(what_one_end_seals_the_other_opens),
	T(a_clone_of_a_client_in_use_serves_a_connection_of_its_own),
	T(several_packets_seal_at_once_as_one_by_one),
	T(index_3_demands_crypt_and_enters_the_checksums),
	T(a_client_refuses_a_challenge_that_is_short_old_or_too_demanding),
	T(tickets_of_impossible_length_make_no_client), T(a_ready_server_ignores_another_response),
	T(every_truncation_of_a_response_is_refused),
	T(a_wrong_length_of_ticket_is_refused_before_it_is_read),
	T(each_wrong_word_of_a_response_gets_its_error),
	T(any_flipped_bit_in_front_of_the_ticket_is_noticed),
	T(the_ticket_readers_errors_reach_the_peer_unchanged),
	T(a_hundred_thousand_bad_responses_leave_no_memory_behind),
	T(a_sealed_body_that_was_changed_is_refused), T(a_length_beyond_the_body_is_refused),
	T(an_unready_server_opens_nothing), T(rxnull_passes_everything_and_answers_no_challenge),
	T(memory_that_runs_out_makes_no_object))
