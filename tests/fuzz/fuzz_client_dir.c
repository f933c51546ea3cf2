/* SPDX-License-Identifier: BSD-2-Clause
 * Directory objects as a cache manager reads them. */
#include "client/cm/dir.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cm_dir *d;
	if (cm_dir_parse(data, size, &d) != AFS_OK)
		return 0;
	/* every row is found by its name, and can be removed */
	for (uint32_t i = 0; i < d->n; i++)
		if (cm_dir_find(d, cm_dir_name(d, &d->rows[i]), d->rows[i].len) != &d->rows[i])
			abort();
	while (d->live) {
		uint32_t i = 0, live = d->live;
		while (d->rows[i].state != CM_ROW_LIVE)
			i++;
		char name[256];
		for (unsigned k = 0; k <= d->rows[i].len; k++)
			name[k] = cm_dir_name(d, &d->rows[i])[k];
		cm_dir_remove(d, name, d->rows[i].len);
		if (d->live != live - 1)
			abort();
	}
	cm_dir_unref(d);
	return 0;
}
