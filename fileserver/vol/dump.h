/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The volume dump stream, read and written piece by piece; knows no store and no network.
 *
 * A reader pulls bytes from a source and gives one item at a time: HEADER VOLUME VNODE* END.  After
 * a VNODE that has data the caller takes `data_len` bytes with dump_data(); what he leaves is
 * skipped.  Attributes may stand in any order, but before the content, as all known writers have
 * it.  All that is read is judged here: sizes, types, parity of vnode numbers, ACL blocks, the end
 * mark, and that nothing follows it.  AFS_EBADDUMP: not a whole and valid dump; dump_reader.why says what and
 * `at` where.
 *
 * Source: dump-format.md. */
#pragma once
#include "cell/base/err.h"
#include "cell/proto/fid.h"

enum { DUMP_ACL_SIZE = 192, DUMP_TEXT_MAX = 256 };

struct dump_source {
	/* Exactly n bytes, or AFS_EEOF when the stream ends before; other errors are passed on. */
	afs_err (*read)(void *ctx, void *p, size_t n);
	void *ctx;
};

struct dump_header {
	uint32_t volume;
	char name[AFS_VOLNAME_MAX + 1];
	uint32_t from, to; /* seconds; from 0: full */
};

/* Fields as in the stream; dates in seconds, sizes in KiB. */
struct dump_volume {
	uint32_t id, parent, clone, next_unique, max_quota, min_quota, disk_used, file_count;
	uint32_t account, owner, creation, access, update, expiration, backup;
	uint32_t week_use[7], day_use_date, day_use;
	uint8_t type, in_service, blessed;
	char name[AFS_VOLNAME_MAX + 1], offline_message[DUMP_TEXT_MAX];
};

struct dump_vnode {
	uint32_t vnode, unique;
	bool keep; /* bare record: exists and did not change */
	uint8_t type;
	uint16_t links, mode;
	uint32_t data_version, mtime, author, owner, group, parent, server_mtime;
	bool has_acl, has_data;
	uint8_t acl[DUMP_ACL_SIZE]; /* directories; counts judged */
	uint64_t data_len;
};

enum dump_item {
	DUMP_HEADER,
	DUMP_VOLUME,
	DUMP_VNODE,
	DUMP_END,
};

struct dump_reader {
	struct dump_source source;
	uint64_t at;     /* bytes taken */
	const char *why; /* after AFS_EBADDUMP */
	struct dump_header header;
	struct dump_volume volume;
	struct dump_vnode vnode;
	/* private */
	int next_section; /* tag already read, or -1 */
	enum { DUMP_AT_START, DUMP_AT_VOLUME, DUMP_AT_SECTION, DUMP_IN_DATA, DUMP_DONE } state;
	uint64_t data_left;
	bool critical;
};

void dump_reader_init(struct dump_reader *r, struct dump_source source);
afs_err dump_next(struct dump_reader *r, enum dump_item *item);
/* Up to n bytes of the last vnode's data; *got is 0 at its end. */
afs_err dump_data(struct dump_reader *r, void *p, size_t n, size_t *got);

/* An ACL block and its entries.  At most 20; negatives come in ascending order of id as FetchACL
 * lists them. */
struct dump_acl {
	uint8_t positive, negative;
	struct {
		int32_t id;
		uint32_t rights;
	} entry[20]; /* positives first */
};
afs_err dump_acl_get(const uint8_t block[DUMP_ACL_SIZE], struct dump_acl *out);
void dump_acl_put(uint8_t block[DUMP_ACL_SIZE], const struct dump_acl *acl);

/* Writing: each function appends to a buffer of the caller's; the sizes below are enough. */
enum { DUMP_HEADER_SIZE = 512, DUMP_VNODE_SIZE = 320, DUMP_END_SIZE = 5, DUMP_BARE_SIZE = 9 };
size_t dump_put_header(uint8_t *out, const struct dump_header *h, const struct dump_volume *v);
/* Attributes and, when has_data, the length that the data bytes must follow. */
size_t dump_put_vnode(uint8_t *out, const struct dump_vnode *v);
size_t dump_put_end(uint8_t *out);
