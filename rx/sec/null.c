/* SPDX-License-Identifier: BSD-2-Clause
 * Index 0.  The object has no state, so all connections share one. */
#include "rx/sec/security.h"

static afs_err null_challenge(struct rx_sec *s, uint8_t *out, size_t cap, size_t *len)
{
	(void)s, (void)out, (void)cap, (void)len;
	return AFS_EPROTOCOL;
}

static afs_err null_accept(struct rx_sec *s, struct rx_conn_id *id, const uint8_t *body, size_t len,
	wall_ns now, struct rx_caller *out)
{
	(void)s, (void)id, (void)body, (void)len, (void)now, (void)out;
	return AFS_EPROTOCOL;
}

/* A server that challenges an unauthenticated connection wants what it cannot have. */
static afs_err null_respond(struct rx_sec *s, struct rx_conn_id *id, const uint8_t *challenge,
	size_t challenge_len, uint8_t *out, size_t cap, size_t *len)
{
	(void)s, (void)id, (void)challenge, (void)challenge_len, (void)out, (void)cap, (void)len;
	return AFS_ESECPROTO;
}

static void null_bind(struct rx_sec *s, const struct rx_conn_id *id) { (void)s, (void)id; }

static uint16_t null_seal(const struct rx_sec *s, const struct rx_sec_packet *p, uint8_t *body,
	size_t data_len, size_t *body_len)
{
	(void)s, (void)p, (void)body;
	*body_len = data_len;
	return 0;
}

static void null_seal_many(
	const struct rx_sec *s, const struct rx_sec_packet *first, struct rx_sec_body *b, size_t n)
{
	(void)s, (void)first;
	for (size_t i = 0; i < n; i++) {
		b[i].body_len = b[i].data_len;
		b[i].cksum = 0;
	}
}

static afs_err null_open(const struct rx_sec *s, const struct rx_sec_packet *p, uint16_t cksum,
	uint8_t *body, size_t body_len, size_t *off, size_t *data_len)
{
	(void)s, (void)p, (void)cksum, (void)body;
	*off = 0;
	*data_len = body_len;
	return AFS_OK;
}

static void null_free(struct rx_sec *s) { (void)s; }

static struct rx_sec *null_clone(const struct rx_sec *s)
{
	(void)s;
	return rx_null_new();
}

static int32_t null_code(const struct rx_sec *s, afs_err err)
{
	(void)s;
	return rx_sec_code(err);
}

static const struct rx_sec_ops null_ops = {
	.sec_class = RX_SEC_NULL,
	.challenge = null_challenge,
	.accept = null_accept,
	.respond = null_respond,
	.bind = null_bind,
	.seal = null_seal,
	.seal_many = null_seal_many,
	.open = null_open,
	.free = null_free,
	.clone = null_clone,
	.code = null_code,
};

static struct rx_sec null_sec = {.ops = &null_ops, .ready = true};

struct rx_sec *rx_null_new(void) { return &null_sec; }
