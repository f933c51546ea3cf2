/* SPDX-License-Identifier: BSD-2-Clause
 * ACL texts come from servers: lines are counted against what they announce, names and numbers are
 * bounded. */
#include "cell/cli/acl_text.h"

#include "cell/base/buf.h"
#include "cell/base/mem.h"
#include "cell/proto/fid.h"

#include <stdio.h>
#include <string.h>

static const char letters[] = "rlidwka";
static const unsigned letter_bits[] = {
	ACL_READ, ACL_LOOKUP, ACL_INSERT, ACL_DELETE, ACL_WRITE, ACL_LOCK, ACL_ADMIN};

void acl_rights_text(unsigned rights, char out[16])
{
	size_t n = 0;
	for (size_t i = 0; letters[i]; i++)
		if (rights & letter_bits[i])
			out[n++] = letters[i];
	for (unsigned i = 0; i < 8; i++)
		if (rights & 0x01000000u << i)
			out[n++] = (char)('A' + i);
	out[n] = 0;
}

bool acl_rights_of(const char *text, unsigned *out)
{
	static const struct {
		const char *word;
		unsigned rights;
	} words[] = {{"read", ACL_READ | ACL_LOOKUP}, {"write", ACL_ALL & ~ACL_ADMIN},
		{"all", ACL_ALL}, {"none", 0}};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(text, words[i].word) == 0) {
			*out = words[i].rights;
			return true;
		}
	}
	*out = 0;
	for (; *text; text++) {
		const char *at = strchr(letters, *text);
		if (at)
			*out |= letter_bits[at - letters];
		else if (*text >= 'A' && *text <= 'H')
			*out |= 0x01000000u << (*text - 'A');
		else
			return false;
	}
	return true;
}

bool acl_text_read(const char *text, struct acl_text *out)
{
	*out = (struct acl_text){0};
	unsigned n[2];
	int at = 0;
	if (sscanf(text, "%u\n%u\n%n", &n[0], &n[1], &at) != 2 || !at || n[0] > ACL_ENTRIES_MAX ||
		n[1] > ACL_ENTRIES_MAX)
		return false;
	text += at;
	for (unsigned kind = 0; kind < 2; kind++) {
		for (; out->n[kind] < n[kind]; out->n[kind]++) {
			struct acl_entry *e = &out->e[kind][out->n[kind]];
			at = 0;
			if (sscanf(text, "%127[^\t ]%*[\t ]%u\n%n", e->name, &e->rights, &at) !=
					2 ||
				!at)
				return false;
			text += at;
		}
	}
	return *text == 0;
}

char *acl_text_write(const struct acl_text *a)
{
	struct buf b = {0};
	buf_printf(&b, "%u\n%u\n", a->n[0], a->n[1]);
	for (unsigned kind = 0; kind < 2; kind++)
		for (unsigned i = 0; i < a->n[kind]; i++)
			buf_printf(&b, "%s\t%u\n", a->e[kind][i].name, a->e[kind][i].rights);
	char *text = buf_take(&b);
	buf_fini(&b);
	return text;
}
