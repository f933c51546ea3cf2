/* SPDX-License-Identifier: BSD-2-Clause
 * Codecs and table of BOZO, and its codes. */
#include "cell/proto/bos.h"

#include "cell/proto/abort.h"

#define XDR_ROWS "cell/proto/bos.def"
#include "rx/xdr/codec_pass.h"

void xdr_get_bozo_key(struct xdr_in *x, struct bozo_key *v)
{
	for (size_t i = 0; i < ARRAY_SIZE(v->data); i++)
		xdr_get_i32(x, &v->data[i]);
}
void xdr_put_bozo_key(struct xdr_out *x, const struct bozo_key *v)
{
	for (size_t i = 0; i < ARRAY_SIZE(v->data); i++)
		xdr_put_i32(x, &v->data[i]);
}
void xdr_print_bozo_key(struct buf *b, const struct bozo_key *v)
{
	buf_printf(b, "{\"bytes\":%zu}", ARRAY_SIZE(v->data));
}

#define RPC_WANT_PROCS
#define RPC_PREFIX bos
#define RPC_ROWS "cell/proto/bos.rpc"
#include "rx/xdr/iface_pass.h"

static const struct {
	afs_err err;
	int32_t code;
} codes[] = {
	{AFS_ENOENT, BZ_NOENT},
	{AFS_EBUSY, BZ_BUSY},
	{AFS_EEXIST, BZ_EXISTS},
	{AFS_ERANGE, BZ_DOM},
	{AFS_EACCESS, BZ_ACCESS},
	{AFS_EPERM, BZ_ACCESS},
	{AFS_EINVAL, BZ_SYNTAX},
	{AFS_EIO, BZ_IO},
	{AFS_EVBADTYPE, BZ_BADTYPE},
	{AFS_EAGAIN, BZ_NOTACTIVE},
	{AFS_EIDEXIST, BZ_KEYINUSE},
	{AFS_ELEVEL, BZ_ENCREQ},
};

int32_t abort_of_bos(afs_err err)
{
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].err == err)
			return codes[i].code;
	/* Rx's own and the security classes' codes are the same in every column. */
	int32_t code = abort_of_vol(err);
	return code < 0 || rx_sec_code(err) ? code : BZ_IO;
}

afs_err err_of_bos(int32_t code)
{
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].code == code)
			return codes[i].err;
	return code < 0 || rx_sec_err(code) ? err_of_vol(code) : AFS_EABORTED;
}

const struct rpc_iface bos_iface = {
	.name = "BOZO",
	.service = BOS_SERVICE,
	.stats_id = 1,
	.procs = bos_procs,
	.count = ARRAY_SIZE(bos_procs),
	.args_max = 4096, /* CreateBnode: eight full strings */
	.results_max = 4096,
	.abort_of = abort_of_bos,
	.err_of = err_of_bos,
};
