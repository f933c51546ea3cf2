/* SPDX-License-Identifier: BSD-2-Clause
 * CHALLENGE bodies at a client, of each level (first byte). */
#include "rx/sec/rxkad_conn.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t ticket[40] = {1};
	const struct rxkad_token token = {.session_key = {1, 2, 4, 7, 8, 11, 13, 14},
		.kvno = 256,
		.ticket = ticket,
		.ticket_len = sizeof(ticket)};
	struct rx_conn_id id = {.epoch = 1, .cid = 4, .index = 2, .call_numbers = {1}};
	uint8_t out[RXKAD_RESPONSE_LEN + sizeof(ticket)];
	size_t len = 0;
	if (size < 1)
		return 0;
	enum rx_sec_level level = (enum rx_sec_level)(data[0] % 3);
	struct rx_sec *c = rxkad_client_new(&token, level);
	if (!c)
		abort();
	c->ops->bind(c, &id);
	afs_err err = c->ops->respond(c, &id, data + 1, size - 1, out, sizeof(out), &len);
	/* an answer only to what is a challenge, and never above the level the user asked for */
	if (err == AFS_OK && (len != sizeof(out) || size - 1 < RXKAD_CHALLENGE_LEN ||
				     rxkad_get32(data + 1 + 8) > (uint32_t)level))
		abort();
	rx_sec_free(c);
	return 0;
}
