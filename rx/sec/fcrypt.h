/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fcrypt, the 64-bit block cipher of rxkad, and the chaining mode used with it, PCBC: each
 * block is mixed with the plain and cipher text of the one before.
 *
 * One block waits for sixteen chains of table reads, so a processor does several independent blocks
 * in the time of one.  Decrypting has them within a run of bytes; encrypting only in several
 * runs, hence the _many.  Processors with AVX2 take 32 blocks abreast, others four.
 *
 * Source: protocol rx-security.md §3.2-3.4; tests/vectors/sec/fcrypt. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { FCRYPT_BLOCK = 8 };

struct fcrypt_key {
	uint32_t round[16];
};
struct fcrypt_run {
	uint8_t *data; /* changed in place */
	size_t len;    /* a multiple of 8; a rest is left alone */
};

void fcrypt_schedule(struct fcrypt_key *k, const uint8_t key[8]);
void fcrypt_encrypt(const struct fcrypt_key *k, uint8_t block[8]);
void fcrypt_decrypt(const struct fcrypt_key *k, uint8_t block[8]);
void fcrypt_pcbc_encrypt(
	const struct fcrypt_key *k, const uint8_t iv[8], uint8_t *data, size_t len);
void fcrypt_pcbc_decrypt(
	const struct fcrypt_key *k, const uint8_t iv[8], uint8_t *data, size_t len);
/* Each run by itself, all from the same iv.  The runs must not overlap; `runs` is used up. */
void fcrypt_pcbc_encrypt_many(
	const struct fcrypt_key *k, const uint8_t iv[8], struct fcrypt_run *runs, size_t n);
