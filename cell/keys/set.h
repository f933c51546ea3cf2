/* SPDX-License-Identifier: BSD-2-Clause
 * The set of keys, as this folder sees it. */
#pragma once
#include "cell/base/mtx.h"
#include "cell/keys/keys.h"

#include <krb5/krb5.h>

enum { KEYS_MAX = 64, KEY_BYTES_MAX = 64 };

struct key {
	int32_t kvno, enctype;
	uint32_t len;
	uint8_t bytes[KEY_BYTES_MAX];
};
struct keyset {
	struct key key[KEYS_MAX]; /* highest kvno first */
	size_t n;
};

struct keys {
	char *cell, *keytab;
	bool weak_crypto, allow_dotted;
	struct mtx lock;   /* a krb5 context serves one thread at a time */
	krb5_context krb5; /* GUARDED_BY(lock) */
	struct keyset set; /* GUARDED_BY(lock) */
};

static inline bool key_is_des(int32_t enctype) { return enctype >= 1 && enctype <= 3; }

/* A context with an empty profile: nothing of this machine's configuration or environment. */
krb5_error_code keys_krb5_bare(krb5_context *out);
/* A context with the profile in `path`; NULL: the system's. */
krb5_error_code keys_krb5_profile(const char *path, krb5_context *out);
/* Adds a sentence to `why`, which may be NULL. */
[[gnu::format(printf, 2, 3)]] void keys_why(struct buf *why, const char *fmt, ...);
/* libkrb5's message for `code`, added to `why` after the formatted text and ": ". */
[[gnu::format(printf, 4, 5)]] void keys_why_krb5(
	struct buf *why, krb5_context ctx, krb5_error_code code, const char *fmt, ...);
/* Writes the file `name` in `dir`, mode 0600, beside its place and renames it. */
afs_err keys_write_file(const char *dir, const char *name, const struct buf *b, struct buf *why);
