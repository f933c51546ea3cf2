/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ACLs as text on the wire (fileserver.md §6), and rights as people write them: letters of rlidwka and
 * A-H, or read, write, all, none. */
#pragma once
#include <stdbool.h>

enum { ACL_ENTRIES_MAX = 20, ACL_WHO_MAX = 128, ACL_RIGHTS_TEXT = 16 };

struct acl_text {
	struct acl_entry {
		char name[ACL_WHO_MAX];
		unsigned rights;
	} e[2][ACL_ENTRIES_MAX + 1]; /* normal, negative */
	unsigned n[2];
};
/* False: it breaks the format, or has more than ACL_ENTRIES_MAX lines of a kind. */
bool acl_text_read(const char *text, struct acl_text *out);
/* The caller's (mem_free), or NULL when out of memory. */
char *acl_text_write(const struct acl_text *a);
void acl_rights_text(unsigned rights, char out[ACL_RIGHTS_TEXT]);
bool acl_rights_of(const char *text, unsigned *out);
