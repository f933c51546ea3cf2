/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Files that administrators' tools and the overseer read: CellServDB, KeyFileExt, bos.json.  The first byte
 * chooses which. */
#include "cell/admin/inside.h"
#include "cell/bos/inside.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void cells(const uint8_t *p, size_t n)
{
	static const char *const wants[] = {"", "a", "example.org"};
	for (size_t i = 0; i < ARRAY_SIZE(wants); i++) {
		struct where_cell c;
		CLEANUP(buf) struct buf why = {};
		if (where_parse((const char *)p, n, wants[i], &c, &why) == AFS_OK && (c.n == 0 || c.n > ADMIN_DB_MAX || !c.name[0]))
			__builtin_trap();
	}
}

static void keys(const uint8_t *p, size_t n)
{
	CLEANUP(keys) struct keys *k = NULL;
	struct keys_config kc = {.cell = "test.cell"};
	if (keys_open(&kc, &k, NULL) == AFS_OK)
		(void)keyfile_parse(p, n, k); /* whatever it says, it has not fallen over */
}

static void overseer(const uint8_t *p, size_t n)
{
	static const struct bos_instance one[] = {{.name = "fs", .type = "fs"}};
	struct bos_state st;
	bos_state_init(&st);
	if (bos_state_parse((const char *)p, n, one, 1, &st) == AFS_OK)
		for (size_t i = 0; i < st.user_count; i++)
			if (!bos_user_ok(st.users[i], strlen(st.users[i])))
				__builtin_trap();
	if (!bos_time_ok(&st.general) || !bos_time_ok(&st.newbin))
		__builtin_trap();
	bos_state_fini(&st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0]) {
	case 'C': cells(data + 1, size - 1); break;
	case 'K': keys(data + 1, size - 1); break;
	case 'O': overseer(data + 1, size - 1); break;
	default: break;
	}
	return 0;
}
