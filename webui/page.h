/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A page of a long list. */
#pragma once
#include <jansson.h>

enum { WEB_PAGE_USUAL = 100, WEB_PAGE_MAX = 500 };

/* `how`: {"find": a word that some value of a row holds, "sort": a key, "down": backwards, "from", "count",
 * "pick": {key: [values]}}, all optional; what has another type counts as absent.  Gives {"rows", "total": that fit,
 * "all": that there are, "from"}, the caller's; NULL: out of memory. */
json_t *web_page(const json_t *rows, const json_t *how);
