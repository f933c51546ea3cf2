/* SPDX-License-Identifier: BSD-2-Clause
 * ACL texts and rights as the command line reads them; what was read is written back the same. */
#include "cell/base/mem.h"
#include "cell/cli/acl_text.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(str) char *text = mem_strndup((const char *)data, size);
	struct acl_text a, b;
	unsigned rights;
	if (!text)
		return 0;
	(void)acl_rights_of(text, &rights);
	if (!acl_text_read(text, &a))
		return 0;
	CLEANUP(str) char *out = acl_text_write(&a);
	if (out && (!acl_text_read(out, &b) || memcmp(a.n, b.n, sizeof(a.n)) != 0))
		abort();
	return 0;
}
