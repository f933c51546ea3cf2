/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Answers of a database that were worked out once, kept in memory until the database changes.
 *
 *   uint64_t since = memo_since(m);          before the database is read
 *   if (memo_get(m, kind, key, len, out, cap, &n)) return ...;
 *   ... read ...
 *   memo_put(m, since, kind, key, len, out, n);
 *
 * A commit calls memo_forget() before it is acknowledged: then everything is forgotten, and what was read
 * before it is not taken any more.  Changes are rare beside questions, so that nothing finer is worth its
 * mistakes.  When the bound is reached everything is forgotten, too.
 *
 * Any thread; one short lock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memo;
struct memo *memo_new(size_t bytes_most); /* NULL: out of memory */
void memo_free(struct memo *m);

uint64_t memo_since(struct memo *m);
/* Copies the value when there is one of at most `cap` bytes. */
bool memo_get(struct memo *m, uint8_t kind, const void *key, size_t key_len, void *out, size_t cap, size_t *len);
/* Not when memory is short or something changed since. */
void memo_put(struct memo *m, uint64_t since, uint8_t kind, const void *key, size_t key_len, const void *value, size_t len);
void memo_forget(struct memo *m);
