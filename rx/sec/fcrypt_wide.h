/* SPDX-License-Identifier: BSD-2-Clause
 * Many independent blocks at once, where the processor can.  This folder's own; callers are in fcrypt.c. */
#pragma once
#include "rx/sec/fcrypt.h"

#include <stdbool.h>

enum {
	FCRYPT_WIDE = 32,
	/* From so many blocks on, 32 at once (some of them for nothing) cost less than four by four. */
	FCRYPT_WIDE_LEAST = 14,
};

/* May the two below be called on this processor? */
bool fcrypt_wide_here(void);
/* Each of the 32 blocks, as it lies in memory, in place. */
void fcrypt_wide_encrypt(const struct fcrypt_key *k, uint64_t block[FCRYPT_WIDE]);
void fcrypt_wide_decrypt(const struct fcrypt_key *k, uint64_t block[FCRYPT_WIDE]);

/* What the public functions do on other processors; tests hold the two against each other. */
void fcrypt_plain_decrypt(
	const struct fcrypt_key *k, const uint8_t iv[8], uint8_t *data, size_t len);
void fcrypt_plain_encrypt_many(
	const struct fcrypt_key *k, const uint8_t iv[8], struct fcrypt_run *runs, size_t n);
