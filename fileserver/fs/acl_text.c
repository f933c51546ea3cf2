/* SPDX-License-Identifier: BSD-2-Clause
 * A cursor over counted bytes; what does not fit the form fails where it stands. */
#include "fileserver/fs/acl_text.h"

#include <string.h>

struct cursor {
	const char *p, *end; /* without the NUL */
};

static bool take_number(struct cursor *c, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;
	const char *start = c->p;
	while (c->p < c->end && *c->p >= '0' && *c->p <= '9') {
		v = v * 10 + (uint64_t)(*c->p++ - '0');
		if (v > max)
			return false;
	}
	*out = v;
	return c->p > start;
}

static bool take_char(struct cursor *c, char want)
{
	if (c->p == c->end || *c->p != want)
		return false;
	c->p++;
	return true;
}

static bool take_blanks(struct cursor *c)
{
	const char *start = c->p;
	while (c->p < c->end && (*c->p == '\t' || *c->p == ' '))
		c->p++;
	return c->p > start;
}

static bool take_name(struct cursor *c, char out[AFS_PRNAME_MAX + 1])
{
	size_t n = 0;
	while (c->p < c->end && (unsigned char)*c->p > ' ' && *c->p != 0x7f) {
		if (n == AFS_PRNAME_MAX)
			return false;
		out[n++] = *c->p++;
	}
	out[n] = 0;
	return n > 0;
}

afs_err acl_text_parse(const void *bytes, size_t len, struct acl_text *out)
{
	const char *text = bytes;
	if (len == 0 || memchr(text, 0, len) != text + len - 1)
		return AFS_EINVAL;
	struct cursor c = {text, text + len - 1};
	struct acl_text acl = {0};
	uint64_t positive, negative, rights;
	if (!take_number(&c, ACL_TEXT_ENTRIES, &positive) || !take_char(&c, '\n') ||
		!take_number(&c, ACL_TEXT_ENTRIES, &negative) || !take_char(&c, '\n') ||
		positive + negative > ACL_TEXT_ENTRIES)
		return AFS_EINVAL;
	for (size_t i = 0; i < positive + negative; i++) {
		if (!take_name(&c, acl.e[i].name) || !take_blanks(&c) ||
			!take_number(&c, UINT32_MAX, &rights) || !take_char(&c, '\n') ||
			(rights & ~(uint64_t)ACL_TEXT_RIGHTS))
			return AFS_EINVAL;
		acl.e[i].rights = (uint32_t)rights;
	}
	if (c.p != c.end)
		return AFS_EINVAL;
	acl.positive = (uint8_t)positive;
	acl.negative = (uint8_t)negative;
	*out = acl;
	return AFS_OK;
}

void acl_text_print(const struct acl_text *acl, struct buf *out)
{
	buf_printf(out, "%u\n%u\n", acl->positive, acl->negative);
	for (size_t i = 0; i < (size_t)acl->positive + acl->negative; i++)
		buf_printf(out, "%s\t%u\n", acl->e[i].name, acl->e[i].rights);
	buf_putc(out, 0);
}
