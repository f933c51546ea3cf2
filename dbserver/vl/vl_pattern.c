/* SPDX-License-Identifier: BSD-2-Clause
 * Patterns as a line of items: the states of matching are a set of positions in it, so a name costs at
 * most its length times the pattern's, and nothing backtracks. */
#include "dbserver/vl/vl_store.h"

static void set_add(uint64_t set[4], unsigned char c) { set[c / 64] |= UINT64_C(1) << (c % 64); }
static bool set_has(const uint64_t set[4], unsigned char c)
{
	return set[c / 64] >> (c % 64) & 1;
}

/* `[...]` from behind its bracket; gives what follows it, or NULL. */
static const char *read_set(const char *p, const char *end, uint64_t set[4])
{
	bool negate = p < end && *p == '^';
	if (negate)
		p++;
	for (bool first = true; p < end && (first || *p != ']'); first = false) {
		unsigned char from = (unsigned char)*p++, to = from;
		if (from == '[' && p < end && (*p == ':' || *p == '.' || *p == '='))
			return NULL; /* classes go by locale */
		if (end - p >= 2 && *p == '-' && p[1] != ']') {
			to = (unsigned char)p[1];
			p += 2;
		}
		if (to < from)
			return NULL;
		for (unsigned c = from; c <= to; c++)
			set_add(set, (unsigned char)c);
	}
	if (p == end)
		return NULL;
	if (negate)
		for (int i = 0; i < 4; i++)
			set[i] = ~set[i];
	return p + 1;
}

afs_err vl_pattern_init(struct vl_pattern *pat, const char *text, size_t len)
{
	*pat = (struct vl_pattern){};
	const char *p = text, *end = text + len;
	if (p < end && *p == '^') /* it is anchored in any case */
		p++;
	while (p < end) {
		if (*p == '$' && p + 1 == end)
			break;
		/* a star at the start is an ordinary character */
		if (*p == '*' && pat->n) {
			pat->item[pat->n - 1].star = true;
			p++;
			continue;
		}
		if (pat->n == VL_PATTERN_ITEMS)
			return AFS_EBADNAME;
		uint64_t *set = pat->item[pat->n++].set;
		char c = *p++;
		if (c == '.') {
			memset(set, 0xff, sizeof(pat->item[0].set));
		} else if (c == '[') {
			p = read_set(p, end, set);
			if (!p)
				return AFS_EBADNAME;
		} else if (c == '\\') {
			/* groups, counts and references are letters, digits and brackets */
			if (p == end || !strchr(".*[]^$\\-_", *p))
				return AFS_EBADNAME;
			set_add(set, (unsigned char)*p++);
		} else {
			set_add(set, (unsigned char)c);
		}
	}
	return AFS_OK;
}

/* Positions that are reached without a character: past each starred item. */
static void spread(const struct vl_pattern *p, bool at[VL_PATTERN_ITEMS + 1])
{
	for (unsigned i = 0; i < p->n; i++)
		if (at[i] && p->item[i].star)
			at[i + 1] = true;
}

bool vl_pattern_match(const struct vl_pattern *p, const char *s, size_t len)
{
	bool at[VL_PATTERN_ITEMS + 1] = {true};
	spread(p, at);
	for (size_t k = 0; k < len; k++) {
		bool next[VL_PATTERN_ITEMS + 1] = {};
		for (unsigned i = 0; i < p->n; i++) {
			if (!at[i] || !set_has(p->item[i].set, (unsigned char)s[k]))
				continue;
			next[p->item[i].star ? i : i + 1] = true;
		}
		spread(p, next);
		memcpy(at, next, sizeof(at));
	}
	return at[p->n];
}
