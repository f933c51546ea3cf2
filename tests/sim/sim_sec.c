/* SPDX-License-Identifier: BSD-2-Clause
 * A security class without secrets: eight bytes of header that hash everything a seal must cover, a
 * challenge of 16 bytes, a response that repeats it with the call numbers. */
#include "cell/base/mem.h"
#include "tests/sim/sim.h"

#include <string.h>

struct sim_sec {
	struct rx_sec base;
	struct rx_conn_id id;
	bool server;
};

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ (h >> 29);
}

static uint64_t hash(const struct rx_sec_packet *p, const uint8_t *body, size_t n)
{
	uint64_t h = mix(p->epoch, p->cid);
	h = mix(h, p->call);
	h = mix(h, p->seq);
	h = mix(h, p->from_client);
	h = mix(h, n);
	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = 0;
		memcpy(&word, body + i, MIN(n - i, (size_t)8));
		h = mix(h, word);
	}
	return h;
}

static void get_nonce(const struct sim_sec *s, uint8_t out[16])
{
	uint64_t a = mix(s->id.epoch, s->id.cid), b = mix(a, 7);
	memcpy(out, &a, 8);
	memcpy(out + 8, &b, 8);
}

static afs_err challenge(struct rx_sec *base, uint8_t *out, size_t cap, size_t *len)
{
	if (cap < 16)
		return AFS_EINVAL;
	get_nonce((struct sim_sec *)base, out);
	*len = 16;
	return AFS_OK;
}

static afs_err respond(struct rx_sec *base, struct rx_conn_id *id, const uint8_t *ch, size_t ch_len,
	uint8_t *out, size_t cap, size_t *len)
{
	(void)base;
	if (ch_len != 16 || cap < 32)
		return AFS_EPACKETSHORT;
	memcpy(out, ch, 16);
	for (int i = 0; i < 4; i++)
		for (int b = 0; b < 4; b++)
			out[16 + 4 * i + b] = (uint8_t)(id->call_numbers[i] >> (24 - 8 * b));
	*len = 32;
	return AFS_OK;
}

static afs_err accept(struct rx_sec *base, struct rx_conn_id *id, const uint8_t *body, size_t len,
	wall_ns now, struct rx_caller *out)
{
	struct sim_sec *s = (struct sim_sec *)base;
	uint8_t want[16];
	(void)now;
	get_nonce(s, want);
	if (len < 32)
		return AFS_EPACKETSHORT;
	if (memcmp(want, body, 16) != 0)
		return AFS_EOUTOFSEQ;
	for (int i = 0; i < 4; i++)
		id->call_numbers[i] = (uint32_t)body[16 + 4 * i] << 24 |
				      (uint32_t)body[17 + 4 * i] << 16 |
				      (uint32_t)body[18 + 4 * i] << 8 | body[19 + 4 * i];
	*out = (struct rx_caller){
		.sec_class = RX_SEC_RXKAD, .authenticated = true, .name = "tester"};
	base->ready = true;
	base->header = 8;
	return AFS_OK;
}

static void bind_id(struct rx_sec *base, const struct rx_conn_id *id)
{
	((struct sim_sec *)base)->id = *id;
}

static uint16_t seal(const struct rx_sec *base, const struct rx_sec_packet *p, uint8_t *body,
	size_t n, size_t *body_len)
{
	(void)base;
	uint64_t h = hash(p, body + 8, n);
	memcpy(body, &h, 8);
	*body_len = n + 8;
	return (uint16_t)(h >> 48) | 1;
}

static afs_err open_body(const struct rx_sec *base, const struct rx_sec_packet *p, uint16_t cksum,
	uint8_t *body, size_t body_len, size_t *off, size_t *data_len)
{
	(void)base;
	if (body_len < 8)
		return AFS_EPACKETSHORT;
	uint64_t h = hash(p, body + 8, body_len - 8);
	if (memcmp(body, &h, 8) != 0 || cksum != ((uint16_t)(h >> 48) | 1))
		return AFS_ESEALED;
	*off = 8;
	*data_len = body_len - 8;
	return AFS_OK;
}

static void free_sec(struct rx_sec *base) { mem_free(base); }

static int32_t code(const struct rx_sec *base, afs_err err)
{
	(void)base;
	return rx_sec_code(err);
}

static const struct rx_sec_ops ops = {
	.sec_class = RX_SEC_RXKAD,
	.challenge = challenge,
	.accept = accept,
	.respond = respond,
	.bind = bind_id,
	.seal = seal,
	.open = open_body,
	.free = free_sec,
	.code = code,
};

struct rx_sec *sim_sec_new(bool server)
{
	struct sim_sec *s = mem_new(struct sim_sec);
	if (!s)
		return NULL;
	s->base.ops = &ops;
	s->base.header = 8;
	s->base.ready = !server;
	s->server = server;
	return &s->base;
}
