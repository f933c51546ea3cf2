/* SPDX-License-Identifier: BSD-2-Clause
 * Bodies of DATA packets at each level: first byte level and whether the seal is put right, so that the
 * sealed length is reached. */
#include "rx/sec/rxkad_conn.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	const uint8_t session[8] = {1, 2, 4, 7, 8, 11, 13, 14};
	struct rxkad k = {.sec = {.ready = true}};
	rxkad_set_session(&k, session);
	rxkad_set_level(&k, (enum rx_sec_level)(data[0] % 3));
	rxkad_set_preseq(&k, 1, 4, 2);
	const struct rx_sec_packet p = {1, 4, 1, 1, true, 0};
	uint8_t none[16];
	size_t n = size - 1, len, off, got;
	uint8_t *body = malloc(n ? n : 1);
	if (!body)
		abort();
	memcpy(body, data + 1, n);
	if (data[0] & 0x80 && n >= 8) {
		if (k.level == RX_LEVEL_CRYPT)
			fcrypt_pcbc_encrypt(&k.key, session, body, n);
		else if (k.level == RX_LEVEL_AUTH)
			fcrypt_encrypt(&k.key, body);
	}
	uint16_t ck = rxkad_seal(&k.sec, &p, none, 0, &len);
	if (rxkad_open(&k.sec, &p, ck, body, n, &off, &got) == AFS_OK && (off > n || got > n - off))
		abort();
	if (rxkad_open(&k.sec, &p, (uint16_t)(ck ^ 1), body, n, &off, &got) == AFS_OK)
		abort();
	free(body);
	return 0;
}
