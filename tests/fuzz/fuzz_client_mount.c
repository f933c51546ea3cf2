/* SPDX-License-Identifier: BSD-2-Clause
 * Texts of mount points. */
#include "client/cm/cm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cm_mount_text m;
	if (cm_mount_parse((const char *)data, size, &m) == AFS_OK && (!m.volume[0] || size < 3))
		abort();
	return 0;
}
