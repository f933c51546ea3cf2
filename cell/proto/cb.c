/* SPDX-License-Identifier: BSD-2-Clause
 * Codecs and table of RXAFSCB, and UUIDs as they cross its wire. */
#include "cell/proto/cb.h"

#include "cell/base/rand.h"
#include "cell/proto/abort.h"

#include <stdio.h>

#define XDR_ROWS "cell/proto/cb.def"
#include "rx/xdr/codec_pass.h"

#define RPC_WANT_PROCS
#define RPC_PREFIX cb
#define RPC_ROWS "cell/proto/cb.rpc"
#include "rx/xdr/iface_pass.h"

const struct rpc_iface cb_iface = {
	.name = "RXAFSCB",
	.service = CB_SERVICE,
	.stats_id = 6,
	.procs = cb_procs,
	.count = ARRAY_SIZE(cb_procs),
	.results_max = 16 * 1024, /* statistics: up to 2048 words */
	.args_max = 2048, /* interfaceAddr 432 bytes and 196 words of capabilities */
	.abort_of = abort_of_fs,
	.err_of = err_of_fs,
};

void afs_uuid_to_bytes(const struct afsUUID *u, uint8_t out[AFS_UUID_BYTES])
{
	be32_put(out, u->time_low);
	be16_put(out + 4, (uint16_t)(u->time_mid & 0xffff));
	be16_put(out + 6, (uint16_t)(u->time_hi_and_version & 0xffff));
	out[8] = (uint8_t)(u->clock_seq_hi_and_reserved & 0xff);
	out[9] = (uint8_t)(u->clock_seq_low & 0xff);
	for (unsigned i = 0; i < 6; i++)
		out[10 + i] = (uint8_t)(u->node[i] & 0xff);
}

struct afsUUID afs_uuid_from_bytes(const uint8_t b[AFS_UUID_BYTES])
{
	struct afsUUID u = {
		.time_low = be32_get(b),
		.time_mid = be16_get(b + 4),
		.time_hi_and_version = be16_get(b + 6),
		.clock_seq_hi_and_reserved = (int8_t)b[8],
		.clock_seq_low = (int8_t)b[9],
	};
	for (unsigned i = 0; i < 6; i++)
		u.node[i] = (int8_t)b[10 + i];
	return u;
}

bool afs_uuid_equal(const struct afsUUID *a, const struct afsUUID *b)
{
	uint8_t x[AFS_UUID_BYTES], y[AFS_UUID_BYTES];
	afs_uuid_to_bytes(a, x);
	afs_uuid_to_bytes(b, y);
	return memcmp(x, y, sizeof(x)) == 0;
}

bool afs_uuid_is_nil(const struct afsUUID *u) { return afs_uuid_equal(u, &(struct afsUUID){0}); }

struct afsUUID afs_uuid_random(void)
{
	uint8_t b[AFS_UUID_BYTES];
	rand_bytes(b, sizeof(b));
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	return afs_uuid_from_bytes(b);
}

const char *afs_uuid_text(const struct afsUUID *u, char out[AFS_UUID_TEXT])
{
	uint8_t b[AFS_UUID_BYTES];
	afs_uuid_to_bytes(u, b);
	snprintf(out, AFS_UUID_TEXT, "%08x-%04x-%04x-%02x-%02x-%02x%02x%02x%02x%02x%02x",
		be32_get(b), be16_get(b + 4), be16_get(b + 6), b[8], b[9], b[10], b[11], b[12],
		b[13], b[14], b[15]);
	return out;
}
