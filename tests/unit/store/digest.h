/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A number that says whether two volumes look the same to a client. */
#pragma once
#include "store_lib.h"

static inline uint64_t mix(uint64_t h, const void *p, size_t n)
{
	const uint8_t *at = p;
	for (; n; n--)
		h = (h ^ *at++) * 1099511628211u;
	return h;
}

/* Of all that a client can see of a volume. */
static inline uint64_t digest(struct vs_volume *v)
{
	static uint8_t bytes[1 << 20];
	uint64_t h = 1469598103934665603u;
	for (int dirs = 0; dirs < 2; dirs++) {
		struct vs_status st;
		struct vs_acl acl;
		for (uint32_t after = 0; vs_vnode_next(v, dirs, after, &st, &acl) == AFS_OK; after = st.fid.vnode) {
			struct vs_file *f;
			struct vs_status open;
			size_t got;
			const uint64_t fields[] = {st.fid.vnode, st.fid.unique, st.parent.vnode, st.type, st.mode,
				(uint32_t)st.owner, st.links, st.length, st.dv, (uint64_t)st.server_mtime};
			h = mix(h, fields, sizeof(fields));
			assert_ok(vs_file_open_claimed(v, st.fid, &open, &f));
			assert_int_equal(open.dv, st.dv);
			for (uint64_t pos = 0; pos < st.length; pos += got) {
				assert_ok(vs_file_read(f, pos, bytes, sizeof(bytes), &got));
				assert_true(got > 0);
				h = mix(h, bytes, got);
			}
			vs_file_close(f);
		}
	}
	return h;
}
