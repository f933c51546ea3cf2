/* SPDX-License-Identifier: BSD-2-Clause
 * Vnode numbers: the lowest free one of its parity (odd: directories), as other servers give them.
 * Which are in use is read from the rows a piece at a time, when the pieces below are full. */
#include "fileserver/store/internal.h"

#include "cell/base/log.h"

enum { PIECE = 65536 };

static afs_err load_piece(struct vs_volume *v)
{
	struct vs_numbers *n = &v->numbers;
	if (n->known > UINT32_MAX - 2 * PIECE)
		return log_error(AFS_EDISKFULL,
			"vs.volume.full volume=%u text=\"no vnode numbers left\"", v->id);
	size_t words = n->known / 64, more = PIECE / 64;
	uint64_t *grown = mem_resize(n->bits, words, words + more, sizeof(uint64_t));
	if (!grown)
		return AFS_ENOMEM;
	n->bits = grown;
	CLEANUP(db_rows)
	struct db_rows r =
		db_query(v->db, Q_VNODE_RANGE, DB_INT(n->known), DB_INT(n->known + PIECE));
	while (db_next(&r)) {
		uint64_t number = (uint64_t)db_int(&r, 0);
		n->bits[number / 64] |= UINT64_C(1) << number % 64;
	}
	if (r.err)
		return vs_err_of_db(r.err);
	if (n->known == 0)
		n->bits[0] |= 1; /* there is no vnode 0 */
	n->known += PIECE;
	return AFS_OK;
}

afs_err vs_number_take(struct vs_volume *v, bool directory, uint32_t *out)
{
	struct vs_numbers *n = &v->numbers;
	const uint64_t mask =
		directory ? UINT64_C(0xaaaaaaaaaaaaaaaa) : UINT64_C(0x5555555555555555);
	uint32_t *hint = &n->hint[directory];
	for (;;) {
		for (uint32_t w = *hint / 64; w < n->known / 64; w++) {
			uint64_t avail = ~n->bits[w] & mask;
			if (avail) {
				uint32_t number = w * 64 + (uint32_t)__builtin_ctzll(avail);
				n->bits[w] |= UINT64_C(1) << number % 64;
				*hint = number;
				*out = number;
				return AFS_OK;
			}
		}
		*hint = n->known;
		TRY(load_piece(v));
	}
}

void vs_number_give(struct vs_volume *v, uint32_t vnode)
{
	struct vs_numbers *n = &v->numbers;
	if (vnode >= n->known)
		return; /* not loaded yet: the rows will tell */
	n->bits[vnode / 64] &= ~(UINT64_C(1) << vnode % 64);
	uint32_t *hint = &n->hint[vnode & 1];
	*hint = MIN(*hint, vnode);
}
