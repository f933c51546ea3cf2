/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/keys/der.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Tag and length of the next element; false, and bad, unless its content is there in full. */
static bool element(struct der *in, uint8_t *tag, struct der_bytes *content)
{
	const uint8_t *p = in->p;
	if (in->bad || in->end - p < 2) {
		in->bad = true;
		return false;
	}
	*tag = *p++;
	size_t n = *p++;
	if (n & 0x80) {
		size_t bytes = n & 0x7f;
		if (bytes < 1 || bytes > 4 || (size_t)(in->end - p) < bytes) {
			in->bad = true;
			return false;
		}
		for (n = 0; bytes; bytes--)
			n = n << 8 | *p++;
	}
	/* a tag of several bytes is nothing that a ticket has */
	if ((*tag & 0x1f) == 0x1f || n > (size_t)(in->end - p)) {
		in->bad = true;
		return false;
	}
	*content = (struct der_bytes){p, n};
	in->p = p + n;
	return true;
}

bool der_next_is(const struct der *in, uint8_t tag)
{
	return !in->bad && in->p < in->end && *in->p == tag;
}

struct der_bytes der_bytes(struct der *in, uint8_t tag)
{
	struct der_bytes content;
	uint8_t got;
	if (element(in, &got, &content) && got == tag)
		return content;
	in->bad = true;
	return (struct der_bytes){NULL, 0};
}

struct der der_enter(struct der *in, uint8_t tag)
{
	struct der_bytes b = der_bytes(in, tag);
	return (struct der){b.p, b.n ? b.p + b.n : b.p, in->bad};
}

struct der der_enter_only(struct der *in, uint8_t tag)
{
	struct der inside = der_enter(in, tag);
	if (in->p != in->end)
		inside.bad = in->bad = true;
	return inside;
}

void der_skip(struct der *in)
{
	struct der_bytes content;
	uint8_t tag;
	(void)element(in, &tag, &content); /* `bad` sticks */
}

int64_t der_integer(struct der *in)
{
	struct der_bytes b = der_bytes(in, DER_INTEGER);
	if (b.n < 1 || b.n > 5) {
		in->bad = true;
		return 0;
	}
	uint64_t v = b.p[0] & 0x80 ? UINT64_MAX : 0;
	for (size_t i = 0; i < b.n; i++)
		v = v << 8 | b.p[i];
	return (int64_t)v;
}

/* Days since 1970-01-01 in the Gregorian calendar, for years 0 to 9999. */
static int64_t days_of(int64_t y, int64_t m, int64_t d)
{
	y -= m <= 2;
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t yoe = y - era * 400;
	int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

wall_ns der_time(struct der *in)
{
	struct der_bytes b = der_bytes(in, DER_TIME);
	static const int digits[] = {4, 2, 2, 2, 2, 2};
	static const int64_t least[] = {0, 1, 1, 0, 0, 0}, most[] = {9999, 12, 31, 23, 59, 60};
	int64_t v[6];
	if (b.n != 15 || b.p[14] != 'Z') {
		in->bad = true;
		return 0;
	}
	const uint8_t *p = b.p;
	for (int i = 0; i < 6; i++) {
		v[i] = 0;
		for (int j = 0; j < digits[i]; j++, p++) {
			if (*p < '0' || *p > '9')
				in->bad = true;
			v[i] = v[i] * 10 + (*p - '0');
		}
		if (v[i] < least[i] || v[i] > most[i])
			in->bad = true;
	}
	if (in->bad)
		return 0;
	int64_t sec = days_of(v[0], v[1], v[2]) * 86400 + v[3] * 3600 + v[4] * 60 + v[5];
	if (sec > INT64_MAX / NS_PER_SEC)
		return INT64_MAX;
	if (sec < INT64_MIN / NS_PER_SEC)
		return INT64_MIN;
	return SEC(sec);
}

static void put_raw(struct der_out *o, const void *p, size_t n)
{
	if (o->full || (size_t)(o->p - o->start) < n) {
		o->full = true;
		return;
	}
	o->p -= n;
	if (n)
		memcpy(o->p, p, n);
}

void der_wrap(struct der_out *o, uint8_t tag, const uint8_t *mark)
{
	size_t n = (size_t)(mark - o->p);
	uint8_t head[6];
	size_t len = 0, bytes = n < 0x80 ? 0 : n < 0x100 ? 1 : n < 0x10000 ? 2 : 3;
	head[len++] = tag;
	head[len++] = (uint8_t)(bytes ? 0x80 | bytes : n);
	for (size_t i = bytes; i-- > 0;)
		head[len++] = (uint8_t)(n >> 8 * i);
	put_raw(o, head, len);
}

void der_put_bytes(struct der_out *o, uint8_t tag, const void *p, size_t n)
{
	const uint8_t *mark = o->p;
	put_raw(o, p, n);
	der_wrap(o, tag, mark);
}

void der_put_integer(struct der_out *o, int64_t v)
{
	uint8_t b[8];
	size_t n = 0;
	for (size_t i = 0; i < 8; i++)
		b[i] = (uint8_t)((uint64_t)v >> (56 - 8 * i));
	while (n < 7 && ((b[n] == 0 && !(b[n + 1] & 0x80)) || (b[n] == 0xff && b[n + 1] & 0x80)))
		n++;
	der_put_bytes(o, DER_INTEGER, b + n, 8 - n);
}

void der_put_time(struct der_out *o, wall_ns t)
{
	time_t sec = (time_t)(t / NS_PER_SEC);
	struct tm tm;
	char text[64];
	int n = gmtime_r(&sec, &tm) ? snprintf(text, sizeof(text), "%04d%02d%02d%02d%02d%02dZ",
					      tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
					      tm.tm_hour, tm.tm_min, tm.tm_sec)
				    : 0;
	if (n != 15)
		o->full = true;
	der_put_bytes(o, DER_TIME, text, 15);
}
