/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The text form of an ACL on the wire, both ways:
 *
 *   <positive>\n<negative>\n        counts
 *   <name>\t<rights>\n              positive, then negative entries; rights in decimal
 *   \0                              counted
 *
 * The bytes are a stranger's: counted, never taken for a C string.  Blanks for the tab are taken
 * too; nothing else that deviates is.  Source: fileserver.md §6, OPENAFS-SA-2024-002. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/err.h"
#include "cell/proto/fid.h"

enum { ACL_TEXT_ENTRIES = 20 };
#define ACL_TEXT_RIGHTS UINT32_C(0xff00007f) /* rlidwka and the site's A-H */

struct acl_text {
	uint8_t positive, negative;
	struct {
		char name[AFS_PRNAME_MAX + 1];
		uint32_t rights;
	} e[ACL_TEXT_ENTRIES];
};

/* AFS_EINVAL for anything but the form above: no NUL or one that is not the last byte, counts that
 * are not the number of lines, more than 20 entries, an empty name or one of more than 63 bytes or
 * with control characters, rights that are no decimal number of known bits. */
afs_err acl_text_parse(const void *bytes, size_t len, struct acl_text *out);
/* With its NUL counted in out->len.  Errors stick in `out`. */
void acl_text_print(const struct acl_text *acl, struct buf *out);
