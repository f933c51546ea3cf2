/* SPDX-License-Identifier: BSD-2-Clause
 * Reads a dump stream.  Tags 1..20 open a section, all others are attributes of the open one;
 * unknown attributes are skipped by the rules of their range, unless one was marked critical. */
#include "fileserver/vol/dump.h"

#include <string.h>

enum { SECTION_HEADER = 1, SECTION_VOLUME = 2, SECTION_VNODE = 3, SECTION_END = 4 };
enum { MAGIC_BEGIN = (int)0xb3a11322, MAGIC_END = 0x3a214b6e, NO_TAG = -1 };

void dump_reader_init(struct dump_reader *r, struct dump_source source)
{
	*r = (struct dump_reader){.source = source, .next_section = NO_TAG, .state = DUMP_AT_START};
}

static afs_err bad(struct dump_reader *r, const char *why)
{
	r->why = why;
	return AFS_EBADDUMP;
}

static afs_err take(struct dump_reader *r, void *p, size_t n)
{
	afs_err err = r->source.read(r->source.ctx, p, n);
	if (err == AFS_EEOF)
		return bad(r, "the dump ends too soon");
	TRY(err);
	r->at += n;
	return AFS_OK;
}

static afs_err take_u8(struct dump_reader *r, uint8_t *v) { return take(r, v, 1); }

static afs_err take_u16(struct dump_reader *r, uint16_t *v)
{
	uint8_t b[2];
	TRY(take(r, b, 2));
	*v = be16_get(b);
	return AFS_OK;
}

static afs_err take_u32(struct dump_reader *r, uint32_t *v)
{
	uint8_t b[4];
	TRY(take(r, b, 4));
	*v = be32_get(b);
	return AFS_OK;
}

/* A string up to its NUL; longer ones than `cap` are refused. */
static afs_err take_text(struct dump_reader *r, char *out, size_t cap)
{
	for (size_t i = 0; i < cap; i++) {
		uint8_t c;
		TRY(take_u8(r, &c));
		out[i] = (char)c;
		if (!c)
			return AFS_OK;
	}
	return bad(r, "a text is too long");
}

static afs_err skip(struct dump_reader *r, uint64_t n)
{
	uint8_t sink[512];
	while (n) {
		size_t step = n < sizeof(sink) ? (size_t)n : sizeof(sink);
		TRY(take(r, sink, step));
		n -= step;
	}
	return AFS_OK;
}

/* The array of a tag: at most `max` longs are kept, at most 64 are taken. */
static afs_err take_array(struct dump_reader *r, uint32_t *out, unsigned max, unsigned *count)
{
	uint16_t n;
	TRY(take_u16(r, &n));
	if (n > 64)
		return bad(r, "an array is too long");
	*count = n;
	for (unsigned i = 0; i < n; i++) {
		uint32_t v;
		TRY(take_u32(r, &v));
		if (i < max)
			out[i] = v;
	}
	return AFS_OK;
}

static afs_err skip_unknown(struct dump_reader *r, uint8_t tag)
{
	if (tag == 0x7e) {
		r->critical = true;
		return AFS_OK;
	}
	if (r->critical || tag >= 0x80)
		return bad(r, "a tag that must not be skipped is unknown");
	if (tag >= 0x7b)
		return AFS_OK;
	if (tag >= 0x61)
		return skip(r, 4);
	uint8_t len;
	TRY(take_u8(r, &len));
	uint64_t n = len;
	if (len & 0x80) {
		unsigned bytes = len & 0x7f;
		if (bytes > 4)
			return bad(r, "the length of an unknown tag is too long");
		n = 0;
		for (unsigned i = 0; i < bytes; i++) {
			uint8_t b;
			TRY(take_u8(r, &b));
			n = n << 8 | b;
		}
	}
	return skip(r, n);
}

/* The next tag; a section's is kept for dump_next. */
static afs_err next_attribute(struct dump_reader *r, uint8_t *tag, bool *more)
{
	TRY(take_u8(r, tag));
	*more = *tag > 20;
	if (!*more)
		r->next_section = *tag;
	return AFS_OK;
}

static afs_err read_header(struct dump_reader *r)
{
	uint8_t tag;
	uint32_t magic, version, dates[2] = {0};
	unsigned count = 0;
	bool more;
	TRY(take_u8(r, &tag));
	if (tag != SECTION_HEADER)
		return bad(r, "it does not begin with a dump header");
	TRY(take_u32(r, &magic));
	TRY(take_u32(r, &version));
	if (magic != (uint32_t)MAGIC_BEGIN)
		return bad(r, "it does not begin with a dump header");
	if (version != 1)
		return bad(r, "its version is unknown");
	for (;;) {
		TRY(next_attribute(r, &tag, &more));
		if (!more)
			break;
		switch (tag) {
		case 'v':
			TRY(take_u32(r, &r->header.volume));
			break;
		case 'n':
			TRY(take_text(r, r->header.name, sizeof(r->header.name)));
			break;
		case 't':
			TRY(take_array(r, dates, 2, &count));
			break;
		default:
			TRY(skip_unknown(r, tag));
			continue;
		}
		r->critical = false;
	}
	if (!r->header.volume || count < 2)
		return bad(r, "its header names no volume or no dates");
	r->header.from = dates[0];
	r->header.to = dates[1];
	return AFS_OK;
}

static afs_err read_volume(struct dump_reader *r)
{
	struct dump_volume *v = &r->volume;
	uint8_t tag;
	unsigned count;
	bool more;
	char motd[DUMP_TEXT_MAX];
	uint32_t version;
	*v = (struct dump_volume){0};
	for (;;) {
		TRY(next_attribute(r, &tag, &more));
		if (!more)
			return AFS_OK;
		uint32_t *word = NULL;
		switch (tag) {
		case 'i': word = &v->id; break;
		case 'v': word = &version; break;
		case 'u': word = &v->next_unique; break;
		case 'p': word = &v->parent; break;
		case 'c': word = &v->clone; break;
		case 'q': word = &v->max_quota; break;
		case 'm': word = &v->min_quota; break;
		case 'd': word = &v->disk_used; break;
		case 'f': word = &v->file_count; break;
		case 'a': word = &v->account; break;
		case 'o': word = &v->owner; break;
		case 'C': word = &v->creation; break;
		case 'A': word = &v->access; break;
		case 'U': word = &v->update; break;
		case 'E': word = &v->expiration; break;
		case 'B': word = &v->backup; break;
		case 'D': word = &v->day_use_date; break;
		case 'Z': word = &v->day_use; break;
		case 'V': word = &version; break;
		case 'n': TRY(take_text(r, v->name, sizeof(v->name))); break;
		case 'O': TRY(take_text(r, v->offline_message, sizeof(v->offline_message))); break;
		case 'M': TRY(take_text(r, motd, sizeof(motd))); break;
		case 's': TRY(take_u8(r, &v->in_service)); break;
		case 'b': TRY(take_u8(r, &v->blessed)); break;
		case 't': TRY(take_u8(r, &v->type)); break;
		case 'W': TRY(take_array(r, v->week_use, 7, &count)); break;
		default: TRY(skip_unknown(r, tag)); continue;
		}
		if (word)
			TRY(take_u32(r, word));
		r->critical = false;
	}
}

/* Attributes of one vnode, until its data or the next section. */
static afs_err read_vnode(struct dump_reader *r)
{
	struct dump_vnode *v = &r->vnode;
	uint8_t tag;
	bool more;
	*v = (struct dump_vnode){.keep = true};
	TRY(take_u32(r, &v->vnode));
	TRY(take_u32(r, &v->unique));
	if (!v->vnode || !v->unique)
		return bad(r, "a vnode has number 0");
	for (;;) {
		TRY(next_attribute(r, &tag, &more));
		if (!more)
			return AFS_OK;
		v->keep = false;
		uint32_t hi = 0, lo;
		switch (tag) {
		case 't': TRY(take_u8(r, &v->type)); break;
		case 'l': TRY(take_u16(r, &v->links)); break;
		case 'b': TRY(take_u16(r, &v->mode)); break;
		case 'v': TRY(take_u32(r, &v->data_version)); break;
		case 'm': TRY(take_u32(r, &v->mtime)); break;
		case 'a': TRY(take_u32(r, &v->author)); break;
		case 'o': TRY(take_u32(r, &v->owner)); break;
		case 'g': TRY(take_u32(r, &v->group)); break;
		case 'p': TRY(take_u32(r, &v->parent)); break;
		case 's': TRY(take_u32(r, &v->server_mtime)); break;
		case 'A': {
			struct dump_acl judged;
			TRY(take(r, v->acl, sizeof(v->acl)));
			if (dump_acl_get(v->acl, &judged) != AFS_OK)
				return bad(r, "an access list is malformed");
			v->has_acl = true;
			break;
		}
		case 'h':
			TRY(take_u32(r, &hi));
			[[fallthrough]];
		case 'f':
			TRY(take_u32(r, &lo));
			if (hi > INT32_MAX)
				return bad(r, "a file is impossibly long");
			v->has_data = true;
			v->data_len = r->data_left = (uint64_t)hi << 32 | lo;
			r->critical = false;
			r->next_section = NO_TAG;
			return AFS_OK;
		default: TRY(skip_unknown(r, tag)); continue;
		}
		r->critical = false;
	}
}

/* What stands between a vnode's content and the next section: a second content, which is ignored,
 * and tags that nobody knows. */
static afs_err read_after_data(struct dump_reader *r)
{
	uint8_t tag;
	bool more;
	TRY(skip(r, r->data_left)); /* what the caller did not want */
	r->data_left = 0;
	for (;;) {
		TRY(next_attribute(r, &tag, &more));
		if (!more)
			return AFS_OK;
		if (tag == 'f' || tag == 'h') {
			uint32_t hi = 0, lo;
			if (tag == 'h')
				TRY(take_u32(r, &hi));
			TRY(take_u32(r, &lo));
			TRY(skip(r, (uint64_t)hi << 32 | lo));
			r->critical = false;
		} else if (memchr("tlbvmaogpsA", tag, 11)) {
			return bad(r, "an attribute follows a vnode's content");
		} else {
			TRY(skip_unknown(r, tag));
		}
	}
}

static afs_err judge_vnode(struct dump_reader *r)
{
	const struct dump_vnode *v = &r->vnode;
	if (v->keep)
		return AFS_OK;
	if (v->type < AFS_FILE || v->type > AFS_SYMLINK)
		return bad(r, "a vnode's type is unknown");
	if ((v->type == AFS_DIR) != (v->vnode % 2 == 1))
		return bad(r, "a vnode's number does not fit its type");
	if (v->type == AFS_DIR && (!v->has_acl || !v->has_data))
		return bad(r, "a directory has no access list or no content");
	if (v->type == AFS_DIR && (v->data_len == 0 || v->data_len % 2048 || v->data_len > 1023 * 2048))
		return bad(r, "a directory's length is impossible");
	if (v->type == AFS_SYMLINK && v->data_len > 4095)
		return bad(r, "a symbolic link is too long");
	return AFS_OK;
}

static afs_err end_of_dump(struct dump_reader *r)
{
	uint32_t magic;
	uint8_t more;
	TRY(take_u32(r, &magic));
	if (magic != MAGIC_END)
		return bad(r, "its end mark is wrong");
	afs_err err = r->source.read(r->source.ctx, &more, 1);
	if (err == AFS_OK)
		return bad(r, "something follows its end mark");
	return err == AFS_EEOF ? AFS_OK : err;
}

afs_err dump_next(struct dump_reader *r, enum dump_item *item)
{
	switch (r->state) {
	case DUMP_AT_START:
		TRY(read_header(r));
		r->state = DUMP_AT_VOLUME;
		*item = DUMP_HEADER;
		return AFS_OK;
	case DUMP_AT_VOLUME:
		if (r->next_section != SECTION_VOLUME)
			return bad(r, "it has no volume header");
		TRY(read_volume(r));
		r->state = DUMP_AT_SECTION;
		*item = DUMP_VOLUME;
		return AFS_OK;
	case DUMP_IN_DATA:
		TRY(read_after_data(r));
		r->state = DUMP_AT_SECTION;
		[[fallthrough]];
	case DUMP_AT_SECTION:
		if (r->next_section == SECTION_END) {
			TRY(end_of_dump(r));
			r->state = DUMP_DONE;
			*item = DUMP_END;
			return AFS_OK;
		}
		if (r->next_section != SECTION_VNODE)
			return bad(r, "a section is unknown");
		TRY(read_vnode(r));
		TRY(judge_vnode(r));
		if (r->vnode.has_data)
			r->state = DUMP_IN_DATA;
		*item = DUMP_VNODE;
		return AFS_OK;
	case DUMP_DONE:
		break;
	}
	return AFS_EINVAL;
}

afs_err dump_data(struct dump_reader *r, void *p, size_t n, size_t *got)
{
	*got = 0;
	size_t step = r->data_left < n ? (size_t)r->data_left : n;
	if (r->state != DUMP_IN_DATA || !step)
		return AFS_OK;
	TRY(take(r, p, step));
	r->data_left -= step;
	*got = step;
	return AFS_OK;
}

afs_err dump_acl_get(const uint8_t block[DUMP_ACL_SIZE], struct dump_acl *out)
{
	uint32_t size = be32_get(block), total = be32_get(block + 8);
	uint32_t positive = be32_get(block + 12), negative = be32_get(block + 16);
	*out = (struct dump_acl){0};
	if (total > 20 || positive > total || negative != total - positive || size < 20 + 8 * total)
		return AFS_EBADDUMP;
	out->positive = (uint8_t)positive;
	out->negative = (uint8_t)negative;
	for (uint32_t i = 0; i < total; i++) {
		/* negatives stand from the end backwards */
		uint32_t slot = i < positive ? i : total - 1 - (i - positive);
		out->entry[i].id = (int32_t)be32_get(block + 20 + 8 * slot);
		out->entry[i].rights = be32_get(block + 24 + 8 * slot);
	}
	return AFS_OK;
}

void dump_acl_put(uint8_t block[DUMP_ACL_SIZE], const struct dump_acl *acl)
{
	uint32_t total = (uint32_t)acl->positive + acl->negative;
	memset(block, 0, DUMP_ACL_SIZE);
	be32_put(block, 20 + 8 * total);
	be32_put(block + 4, 1);
	be32_put(block + 8, total);
	be32_put(block + 12, acl->positive);
	be32_put(block + 16, acl->negative);
	for (uint32_t i = 0; i < total; i++) {
		uint32_t slot = i < acl->positive ? i : total - 1 - (i - acl->positive);
		be32_put(block + 20 + 8 * slot, (uint32_t)acl->entry[i].id);
		be32_put(block + 24 + 8 * slot, acl->entry[i].rights);
	}
}
