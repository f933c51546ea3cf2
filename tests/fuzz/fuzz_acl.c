/* SPDX-License-Identifier: BSD-2-Clause
 * The ACL text of StoreACL: whatever is taken must come back the same, and within its bounds. */
#include "fileserver/fs/acl_text.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acl_text acl, again;
	if (acl_text_parse(data, size, &acl) != AFS_OK)
		return 0;
	if (acl.positive + acl.negative > ACL_TEXT_ENTRIES)
		__builtin_trap();
	for (size_t i = 0; i < (size_t)acl.positive + acl.negative; i++)
		if (!acl.e[i].name[0] || strlen(acl.e[i].name) > AFS_PRNAME_MAX ||
			(acl.e[i].rights & ~ACL_TEXT_RIGHTS))
			__builtin_trap();
	struct buf b = {0};
	acl_text_print(&acl, &b);
	if (b.err == AFS_OK && (acl_text_parse(b.data, b.len, &again) != AFS_OK ||
				       memcmp(&acl, &again, sizeof(acl)) != 0))
		__builtin_trap();
	buf_fini(&b);
	return 0;
}
