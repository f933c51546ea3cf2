/* SPDX-License-Identifier: BSD-2-Clause
 * ACLs: the form of dumps (dump-format.md §4.1) and what holds in memory. */
#include "fileserver/store/store.h"

#include <string.h>

enum { HEAD = 20, VERSION = 1 };

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}
static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Positive entries from the front, negative ones from the end backwards. */
static unsigned place(const struct vs_acl *acl, unsigned i)
{
	unsigned total = acl->positive + (unsigned)acl->negative;
	return i < acl->positive ? i : total - 1 - (i - acl->positive);
}

void vs_acl_pack(const struct vs_acl *acl, uint8_t out[VS_ACL_BYTES])
{
	unsigned total = acl->positive + (unsigned)acl->negative;
	memset(out, 0, VS_ACL_BYTES);
	put32(out, HEAD + 8 * total);
	put32(out + 4, VERSION);
	put32(out + 8, total);
	put32(out + 12, acl->positive);
	put32(out + 16, acl->negative);
	for (unsigned i = 0; i < total; i++) {
		uint8_t *e = out + HEAD + 8 * (size_t)place(acl, i);
		put32(e, (uint32_t)acl->e[i].id);
		put32(e + 4, acl->e[i].rights);
	}
}

afs_err vs_acl_unpack(const uint8_t in[VS_ACL_BYTES], struct vs_acl *out)
{
	uint32_t size = get32(in), total = get32(in + 8), positive = get32(in + 12),
		 negative = get32(in + 16);
	if (total > VS_ACL_MAX || positive > total || negative != total - positive ||
		size < HEAD + 8 * total)
		return AFS_EINVAL;
	struct vs_acl acl = {.positive = (uint8_t)positive, .negative = (uint8_t)negative};
	for (unsigned i = 0; i < total; i++) {
		const uint8_t *e = in + HEAD + 8 * (size_t)place(&acl, i);
		acl.e[i] = (struct vs_ace){(int32_t)get32(e), get32(e + 4)};
	}
	*out = acl;
	return AFS_OK;
}

static afs_err sort(struct vs_ace *e, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		struct vs_ace x = e[i];
		unsigned j = i;
		for (; j && e[j - 1].id > x.id; j--)
			e[j] = e[j - 1];
		e[j] = x;
	}
	for (unsigned i = 1; i < n; i++)
		if (e[i].id == e[i - 1].id)
			return AFS_EINVAL;
	return AFS_OK;
}

afs_err vs_acl_normalise(struct vs_acl *acl)
{
	if (acl->positive + (unsigned)acl->negative > VS_ACL_MAX)
		return AFS_ETOOBIG;
	TRY(sort(acl->e, acl->positive));
	return sort(acl->e + acl->positive, acl->negative);
}
