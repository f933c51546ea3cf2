/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Words as people write them: near misses, sizes, times. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number of single-letter edits (a swap of neighbours is one) between two words, case ignored;
 * SIZE_MAX when either is longer than 64. */
size_t text_distance(const char *a, const char *b);
/* "64", "16K", "1.5G", "2GiB": bytes, units of 1024.  False when it is no size or passes INT64_MAX. */
bool text_size(const char *s, int64_t *bytes);
/* The shortest exact spelling of a size: "16M".  `out` holds 24. */
const char *text_size_of(char *out, int64_t bytes);
/* A whole decimal number with an optional sign. */
bool text_int(const char *s, int64_t *v);
/* A dotted IPv4 address, host order. */
bool text_ipv4(const char *s, uint32_t *ip);
/* ... and back; `out` holds 16. */
const char *text_ipv4_of(char *out, uint32_t ip);
#define IPV4(ip) text_ipv4_of((char[16]){0}, (ip))
