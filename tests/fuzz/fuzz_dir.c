/* SPDX-License-Identifier: BSD-2-Clause
 * Directory objects from dumps and disks: no stray access whatever the bytes; what repair accepts
 * is right, and then lookups, additions and removals keep it right. */
#include "cell/base/mem.h"
#include "fileserver/store/dir.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct names {
	const struct vs_dir *d;
	char some[8][VS_DIR_NAME_MAX + 1];
	size_t n, seen;
};

static afs_err take(void *ctx, const struct vs_dir_entry *e)
{
	struct names *n = ctx;
	struct vs_dir_entry again;
	if (strlen(e->name) != e->name_len || e->name_len > VS_DIR_NAME_MAX)
		abort();
	(void)vs_dir_find(n->d, e->name, &again);
	if (n->n < ARRAY_SIZE(n->some) && strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
		strcpy(n->some[n->n++], e->name);
	n->seen++;
	return AFS_OK;
}

static void use(struct vs_dir *d)
{
	struct names n = {.d = d};
	if (vs_dir_each(d, take, &n) != AFS_OK || vs_dir_accept(d) != AFS_OK)
		abort();
	for (size_t i = 0; i < n.n; i++)
		if (vs_dir_remove(d, n.some[i]) != AFS_OK)
			abort();
	if (vs_dir_is_empty(d) != (n.seen - n.n == 2))
		abort();
	for (size_t i = 0; i < n.n; i++)
		if (vs_dir_add(d, n.some[i], 2, 2) != AFS_OK ||
			vs_dir_add(d, n.some[i], 2, 2) != AFS_EEXIST)
			abort();
	if (vs_dir_verify(d, NULL, NULL) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(vs_dir) struct vs_dir d = {0};
	uint32_t pages = (uint32_t)(size / VS_DIR_PAGE);
	if (pages == 0 || pages > 8 || vs_dir_reserve(&d, pages) != AFS_OK)
		return 0;
	memcpy(d.data, data, (size_t)pages * VS_DIR_PAGE);

	/* as it is: damage must not lead astray */
	struct names n = {.d = &d};
	struct vs_dir_entry e;
	(void)vs_dir_each(&d, take, &n);
	(void)vs_dir_verify(&d, NULL, NULL);
	(void)vs_dir_is_empty(&d);
	(void)vs_dir_find(&d, "a", &e);
	if (vs_dir_accept(&d) == AFS_OK) {
		CLEANUP(vs_dir) struct vs_dir copy = {0};
		if (vs_dir_reserve(&copy, pages) != AFS_OK)
			return 0;
		memcpy(copy.data, d.data, (size_t)pages * VS_DIR_PAGE);
		for (size_t i = 0; i < n.n; i++) {
			(void)vs_dir_remove(&copy, n.some[i]);
			(void)vs_dir_add(&copy, n.some[i], 2, 2);
		}
		(void)vs_dir_add(&copy, "a-name-of-two-slots-or-so", 2, 2);
	}
	if (vs_dir_repair(&d, 1, 1, 1, 1) == AFS_OK) {
		if (vs_dir_verify(&d, NULL, NULL) != 0)
			abort();
		use(&d);
	}
	return 0;
}
