/* SPDX-License-Identifier: BSD-2-Clause
 *
 * As much DER as Kerberos tickets need.  A reader never looks past its end and its error sticks:
 * read a whole thing, look at `bad` once.  Only definite lengths of at most four bytes.
 * This folder's own.  Source: ITU-T X.690. */
#pragma once
#include "cell/base/clk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DER_INTEGER = 0x02,
	DER_BITS = 0x03,
	DER_OCTETS = 0x04,
	DER_TIME = 0x18, /* GeneralizedTime */
	DER_TEXT = 0x1b, /* GeneralString */
	DER_SEQUENCE = 0x30,
	DER_APPLICATION = 0x60,
	DER_CONTEXT = 0xa0,
};

struct der {
	const uint8_t *p, *end;
	bool bad;
};
struct der_bytes {
	const uint8_t *p;
	size_t n;
};

static inline struct der der_of(const uint8_t *p, size_t n)
{
	return (struct der){p, p + n, false};
}
/* Is the next element of this tag? */
bool der_next_is(const struct der *in, uint8_t tag);
/* The inside of the next element, which must be of this tag; an empty bad reader otherwise. */
struct der der_enter(struct der *in, uint8_t tag);
/* The same, and its content must be all that `in` still holds. */
struct der der_enter_only(struct der *in, uint8_t tag);
void der_skip(struct der *in); /* one element of any one-byte tag */
struct der_bytes der_bytes(struct der *in, uint8_t tag);
int64_t der_integer(struct der *in); /* at most five content bytes */
wall_ns der_time(struct der *in);    /* YYYYMMDDHHMMSSZ; clamped to what wall_ns holds */
/* The inside of `in` is at its end, and was never bad. */
static inline bool der_done(const struct der *in) { return !in->bad && in->p == in->end; }

/* A writer that fills its buffer from the back, so that lengths are known when they are written. */
struct der_out {
	uint8_t *start, *p; /* content so far is [p, end of buffer) */
	bool full;
};
void der_put_bytes(struct der_out *o, uint8_t tag, const void *p, size_t n);
void der_put_integer(struct der_out *o, int64_t v);
void der_put_time(struct der_out *o, wall_ns t);
/* Wraps everything written since `mark` (a former o->p) into an element. */
void der_wrap(struct der_out *o, uint8_t tag, const uint8_t *mark);
