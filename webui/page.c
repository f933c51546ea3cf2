/* SPDX-License-Identifier: BSD-2-Clause
 * Which rows of a long list a browser gets: those that hold a word, in some order, a page of them. */
#include "webui/page.h"

#include "cell/base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct row {
	json_t *v;
	const char *key; /* of the order; of this row */
	double number;
	size_t at; /* as it came: equal rows stay in that order */
};

static bool holds(const json_t *v, const char *word)
{
	const char *key;
	json_t *x;
	size_t i;
	char number[32];
	switch (json_typeof(v)) {
	case JSON_STRING:
		return strcasestr(json_string_value(v), word);
	case JSON_INTEGER:
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(v));
		return strstr(number, word);
	case JSON_OBJECT:
		json_object_foreach((json_t *)(uintptr_t)v, key, x) if (holds(x, word)) return true;
		return false;
	case JSON_ARRAY:
		json_array_foreach(v, i, x) if (holds(x, word)) return true;
		return false;
	default:
		return false;
	}
}

/* Every key of `pick` has a list of the values that a row may have there. */
static bool picked(const json_t *row, const json_t *pick)
{
	const char *key;
	json_t *values, *v;
	size_t i;
	json_object_foreach((json_t *)(uintptr_t)pick, key, values)
	{
		bool one = false;
		json_array_foreach(values, i, v) one = one || json_equal(v, json_object_get(row, key));
		if (!one)
			return false;
	}
	return true;
}

static int in_order(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int d = x->key && y->key ? strcasecmp(x->key, y->key) : (x->number > y->number) - (x->number < y->number);
	return d ? d : (x->at > y->at) - (x->at < y->at);
}

static size_t number(const json_t *how, const char *key, size_t usual, size_t most)
{
	json_int_t n = json_integer_value(json_object_get(how, key));
	return n <= 0 ? usual : (size_t)n < most ? (size_t)n : most;
}

json_t *web_page(const json_t *rows, const json_t *how)
{
	size_t all = json_array_size(rows), n = 0, i;
	const char *word = json_string_value(json_object_get(how, "find")), *sort = json_string_value(json_object_get(how, "sort"));
	const json_t *pick = json_object_get(how, "pick");
	bool down = json_is_true(json_object_get(how, "down"));
	struct row *hits = mem_alloc(all ? all : 1, sizeof(*hits));
	json_t *row, *list = json_array();
	if (!hits)
		return json_decref(list), NULL;
	json_array_foreach(rows, i, row)
	{
		const json_t *v = sort ? json_object_get(row, sort) : NULL;
		if ((!word || !*word || holds(row, word)) && (!pick || picked(row, pick)))
			hits[n++] = (struct row){row, json_string_value(v), json_number_value(v), i};
	}
	if (sort)
		qsort(hits, n, sizeof(*hits), in_order);
	size_t from = number(how, "from", 0, n), count = number(how, "count", WEB_PAGE_USUAL, WEB_PAGE_MAX);
	for (i = from; i < n && i - from < count; i++)
		json_array_append(list, hits[down ? n - 1 - i : i].v);
	mem_free(hits);
	return json_pack("{s:o, s:I, s:I, s:I}", "rows", list, "total", (json_int_t)n, "all", (json_int_t)all, "from", (json_int_t)from);
}
