/* SPDX-License-Identifier: BSD-2-Clause
 * RESPONSE bodies at a server.  With an even first byte the rest is the body as it is; with an odd one the
 * words behind the seal are the input, and checksum and encryption are put right, so that what comes
 * after them is reached. */
#include "rx/sec/rxkad_conn.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t session[8] = {0xad, 0xef, 0x51, 0x40, 0x5d, 0x7c, 0x75, 0xba};

static afs_err read_ticket(void *ctx, int32_t kvno, const uint8_t *ticket, size_t len, wall_ns now,
	struct rxkad_ticket *out)
{
	(void)ctx, (void)now;
	uint8_t sum = (uint8_t)kvno;
	for (size_t i = 0; i < len; i++)
		sum ^= ticket[i];
	if (sum == 0x55)
		return AFS_EBADTICKET;
	memcpy(out->session_key, session, sizeof(session));
	memset(out->name, 'n', sizeof(out->name)); /* a reader that forgets the NUL does no harm */
	return AFS_OK;
}

static uint32_t nonce(void *ctx)
{
	(void)ctx;
	return 0xc24d74d9;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rxkad_server server = {
		.read_ticket = read_ticket, .random = nonce, .least = RX_LEVEL_AUTH};
	if (size < 1)
		return 0;
	size_t n = size - 1;
	uint8_t *body = malloc(n ? n : 1);
	struct rx_sec *s = rxkad_server_new(&server, data[0] & 2 ? 3 : 2);
	if (!body || !s)
		abort();
	memcpy(body, data + 1, n);
	if (data[0] & 1 && n >= RXKAD_RESPONSE_LEN) {
		struct fcrypt_key k;
		uint32_t h = 1000003;
		memset(body + 16, 0, 4);
		for (int i = 0; i < RXKAD_RESPONSE_LEN; i++)
			h = body[i] + h * 0x10204081u;
		rxkad_put32(body + 16, h);
		fcrypt_schedule(&k, session);
		fcrypt_pcbc_encrypt(&k, session, body + RXKAD_SEALED_AT, RXKAD_SEALED_LEN);
	}
	struct rx_conn_id id = {
		.epoch = 0x9a0b0c0d, .cid = 0x12345670, .index = data[0] & 2 ? 3 : 2};
	struct rx_caller who = {};
	afs_err err = s->ops->accept(s, &id, body, n, SEC(1), &who);
	if ((err == AFS_OK) != s->ready || (err == AFS_OK) != who.authenticated)
		abort();
	if (err == AFS_OK && (who.level < (data[0] & 2 ? RX_LEVEL_CRYPT : RX_LEVEL_AUTH) ||
				     who.level > RX_LEVEL_CRYPT || who.name[RX_NAME_MAX - 1] ||
				     (id.call_numbers[0] & 0x80000000u)))
		abort();
	rx_sec_free(s);
	free(body);
	return 0;
}
