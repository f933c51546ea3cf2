/* SPDX-License-Identifier: BSD-2-Clause
 *
 * KeyFileExt, the keys of an OpenAFS server: count, then per key the length of its head (16, or more
 * with parts to skip), type, kvno, subtype, length of the key, key.  Big-endian.  Source: bos.md §6. */
#include "cell/admin/inside.h"

#include "rx/xdr/xdr.h"

enum { KEY_RXKAD_KRB5 = 2, HEAD_MIN = 16, HEAD_MAX = 4096, KEYS_MAX = 1024, KEY_MAX = 256 };

afs_err keyfile_parse(const uint8_t *p, size_t len, struct keys *keys)
{
	struct xdr_in x = {p, p + len, NULL, AFS_OK};
	uint32_t count;
	xdr_get_u32(&x, &count);
	if (x.err || count > KEYS_MAX)
		return AFS_ECORRUPT;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t head, type, kvno, subtype, n;
		xdr_get_u32(&x, &head);
		xdr_get_u32(&x, &type);
		xdr_get_u32(&x, &kvno);
		xdr_get_u32(&x, &subtype);
		if (x.err || head < HEAD_MIN || head > HEAD_MAX)
			return AFS_ECORRUPT;
		if (!xdr_take(&x, head - HEAD_MIN))
			return AFS_ECORRUPT;
		xdr_get_u32(&x, &n);
		const uint8_t *key = !x.err && n <= KEY_MAX ? xdr_take(&x, n) : NULL;
		if (!key)
			return AFS_ECORRUPT;
		if (type == KEY_RXKAD_KRB5)
			TRY(keys_add(keys, (int32_t)kvno, (int32_t)subtype, key, n));
	}
	return AFS_OK;
}
