/* SPDX-License-Identifier: BSD-2-Clause
 * Writes the sections of a dump stream, attributes in the order that stock writers use. */
#include "fileserver/vol/dump.h"

#include <string.h>

struct out {
	uint8_t *p;
};

static void put_tag(struct out *o, uint8_t tag) { *o->p++ = tag; }

static void put_u8(struct out *o, uint8_t tag, uint8_t v)
{
	put_tag(o, tag);
	*o->p++ = v;
}

static void put_u16(struct out *o, uint8_t tag, uint16_t v)
{
	put_tag(o, tag);
	be16_put(o->p, v);
	o->p += 2;
}

static void put_word(struct out *o, uint32_t v)
{
	be32_put(o->p, v);
	o->p += 4;
}

static void put_u32(struct out *o, uint8_t tag, uint32_t v)
{
	put_tag(o, tag);
	put_word(o, v);
}

static void put_text(struct out *o, uint8_t tag, const char *text)
{
	put_tag(o, tag);
	size_t n = strlen(text) + 1;
	memcpy(o->p, text, n);
	o->p += n;
}

size_t dump_put_header(uint8_t *out, const struct dump_header *h, const struct dump_volume *v)
{
	struct out o = {out};
	put_tag(&o, 1);
	put_word(&o, 0xb3a11322);
	put_word(&o, 1);
	put_u32(&o, 'v', h->volume);
	put_text(&o, 'n', h->name);
	put_u16(&o, 't', 2);
	put_word(&o, h->from);
	put_word(&o, h->to);

	put_tag(&o, 2);
	put_u32(&o, 'i', v->id);
	put_u32(&o, 'v', 1);
	put_text(&o, 'n', v->name);
	put_u8(&o, 's', v->in_service);
	put_u8(&o, 'b', v->blessed);
	put_u32(&o, 'u', v->next_unique);
	put_u8(&o, 't', v->type);
	put_u32(&o, 'p', v->parent);
	put_u32(&o, 'c', v->clone);
	put_u32(&o, 'q', v->max_quota);
	put_u32(&o, 'm', v->min_quota);
	put_u32(&o, 'd', v->disk_used);
	put_u32(&o, 'f', v->file_count);
	put_u32(&o, 'a', v->account);
	put_u32(&o, 'o', v->owner);
	put_u32(&o, 'C', v->creation);
	put_u32(&o, 'A', v->access);
	put_u32(&o, 'U', v->update);
	put_u32(&o, 'E', v->expiration);
	put_u32(&o, 'B', v->backup);
	put_text(&o, 'O', v->offline_message);
	put_text(&o, 'M', "");
	put_u16(&o, 'W', 7);
	for (int i = 0; i < 7; i++)
		put_word(&o, v->week_use[i]);
	put_u32(&o, 'D', v->day_use_date);
	put_u32(&o, 'Z', v->day_use);
	return (size_t)(o.p - out);
}

size_t dump_put_vnode(uint8_t *out, const struct dump_vnode *v)
{
	struct out o = {out};
	put_tag(&o, 3);
	put_word(&o, v->vnode);
	put_word(&o, v->unique);
	if (v->keep)
		return (size_t)(o.p - out);
	put_u8(&o, 't', v->type);
	put_u16(&o, 'l', v->links);
	put_u32(&o, 'v', v->data_version);
	put_u32(&o, 'm', v->mtime);
	put_u32(&o, 'a', v->author);
	put_u32(&o, 'o', v->owner);
	if (v->group)
		put_u32(&o, 'g', v->group);
	put_u16(&o, 'b', v->mode);
	put_u32(&o, 'p', v->parent);
	put_u32(&o, 's', v->server_mtime);
	if (v->has_acl) {
		put_tag(&o, 'A');
		memcpy(o.p, v->acl, DUMP_ACL_SIZE);
		o.p += DUMP_ACL_SIZE;
	}
	if (v->has_data) {
		uint32_t hi = (uint32_t)(v->data_len >> 32), lo = (uint32_t)v->data_len;
		if (hi) {
			put_u32(&o, 'h', hi);
			put_word(&o, lo);
		} else {
			put_u32(&o, 'f', lo);
		}
	}
	return (size_t)(o.p - out);
}

size_t dump_put_end(uint8_t *out)
{
	struct out o = {out};
	put_u32(&o, 4, 0x3a214b6e);
	return (size_t)(o.p - out);
}
