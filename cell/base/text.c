/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/base/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 64 };

size_t text_distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	if (n > WORD_MAX || m > WORD_MAX)
		return SIZE_MAX;
	size_t rows[3][WORD_MAX + 1]; /* the last three lines of the table, turning */
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
			size_t d = up[j - 1] + (x != y);
			if (up[j] + 1 < d)
				d = up[j] + 1;
			if (row[j - 1] + 1 < d)
				d = row[j - 1] + 1;
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2])
				&& y == tolower((unsigned char)a[i - 2]) && up2[j - 2] + 1 < d)
				d = up2[j - 2] + 1;
			row[j] = d;
		}
	}
	return rows[n % 3][m];
}

static const char units[] = "KMGTPE";

bool text_size(const char *s, int64_t *bytes)
{
	if (!isdigit((unsigned char)*s))
		return false;
	/* Whole and fractional part by hand: strtod would take "1e9", "0x10" and "1," of a locale. */
	uint64_t whole = 0;
	double part = 0, place = 0.1;
	for (; isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(whole, 10, &whole)
			|| __builtin_add_overflow(whole, (uint64_t)(*s - '0'), &whole))
			return false;
	if (*s == '.') {
		if (!isdigit((unsigned char)*++s))
			return false;
		for (; isdigit((unsigned char)*s); s++, place /= 10)
			part += (*s - '0') * place;
	}
	unsigned shift = 0;
	const char *u = *s ? strchr(units, toupper((unsigned char)*s)) : NULL;
	if (u) {
		shift = 10 * (unsigned)(u - units + 1);
		s++;
		if (*s == 'i')
			s++;
	}
	if (*s == 'B' || *s == 'b')
		s++;
	if (*s || (part > 0 && shift == 0) || whole > (uint64_t)INT64_MAX >> shift)
		return false;
	uint64_t total = (whole << shift) + (uint64_t)(part * (double)(UINT64_C(1) << shift));
	if (total > INT64_MAX)
		return false;
	*bytes = (int64_t)total;
	return true;
}

const char *text_size_of(char *out, int64_t bytes)
{
	size_t u = 0;
	while (bytes && bytes % 1024 == 0 && u < sizeof(units) - 1) {
		bytes /= 1024;
		u++;
	}
	snprintf(out, 24, "%" PRId64 "%.*s", bytes, u ? 1 : 0, u ? &units[u - 1] : "");
	return out;
}

bool text_int(const char *s, int64_t *v)
{
	const char *digits = s + (*s == '-' || *s == '+');
	if (!*digits || strspn(digits, "0123456789") != strlen(digits))
		return false;
	errno = 0;
	long long n = strtoll(s, NULL, 10);
	if (errno)
		return false;
	*v = n;
	return true;
}

bool text_ipv4(const char *s, uint32_t *ip)
{
	struct in_addr a;
	if (inet_pton(AF_INET, s, &a) != 1)
		return false;
	*ip = ntohl(a.s_addr);
	return true;
}

const char *text_ipv4_of(char *out, uint32_t ip)
{
	snprintf(out, 16, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
	return out;
}
