/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Configuration files: whatever stands in one, it is read or refused with a reason. */
#include "cell/conf/conf.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf problems = {};
	struct conf *c = NULL;
	afs_err err = conf_parse((const char *)data, size, "fuzz.yaml", &c, &problems);
	if ((err == AFS_OK) != (c != NULL) || (err == AFS_ECONFIG && problems.len == 0))
		abort();
	conf_free(c);
	buf_fini(&problems);
	return 0;
}
