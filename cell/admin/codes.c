/* SPDX-License-Identifier: BSD-2-Clause
 * The rows of codes.def; and errnos, which some services send as they are. */
#include "cell/admin/admin.h"

#include "cell/proto/abort.h"

#include <string.h>

enum { ERRNO_MAX = 133 };

static const struct {
	int32_t code;
	const char *text;
} rows[] = {
#define CODE(n, text) {n, text},
#include "cell/admin/codes.def"
#undef CODE
};

const char *admin_code_text(int32_t code)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].code == code)
			return rows[i].text;
	if (code > 0 && code <= ERRNO_MAX)
		return strerrordesc_np(code);
	if (code >= UAE_BASE && code < UAE_BASE + 200) {
		int eno = uae_errno((unsigned)(code - UAE_BASE));
		return eno ? strerrordesc_np(eno) : NULL;
	}
	return NULL;
}
