/* SPDX-License-Identifier: BSD-2-Clause
 * The pages, as part of the program. */
#pragma once
#include <stddef.h>

struct web_asset {
	const char *path, *type;
	const unsigned char *data, *end;
};
extern const struct web_asset web_assets[];
extern const size_t web_asset_count;
