/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Kerberos encryption types as rxgk uses them: over packets, in place, with nothing allocated and no
 * lock once a key is made.  The ciphers and hashes are OpenSSL's; what is here is how RFC 3961, 8009
 * and 6803 put them together.  libk5crypto does the same and the tests compare the two byte by byte;
 * it allocates, copies and derives keys again for every message, which per packet costs more than the
 * cipher.
 *
 * A struct etype_key may be used by any number of threads at once.
 *
 * Source: RFC 3961 §5, RFC 3962, RFC 8009, RFC 6803; protocol rx-security.md §11.2. */
#pragma once
#include "cell/base/err.h"
#include "cell/base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ETYPE_CONFOUNDER = 16, ETYPE_MAC_MAX = 24, ETYPE_KEY_MAX = 32 };

/* 17, 18: AES with SHA-1; 19, 20: AES with SHA-2; 25, 26: Camellia. */
struct etype {
	int32_t number;
	const char *name;  /* as Kerberos configuration has it */
	uint8_t key_len;   /* bytes of a protocol key */
	uint8_t mac_len;   /* bytes of a MIC, and behind an encrypted message */
};
/* NULL: not one of them, or this OpenSSL has not its cipher. */
const struct etype *etype_of(int32_t number);

/* The first out_len bytes of PRF(key, 1 | seed) | PRF(key, 2 | seed) ...; AFS_ENOMEM, AFS_EINVAL when
 * that is more than 255 of them. */
afs_err etype_prf_plus(const struct etype *e, const uint8_t *key, const uint8_t *seed, size_t seed_len,
	uint8_t *out, size_t out_len);

/* What a protocol key makes of one usage number, both for encryption and for MICs.  NULL: memory. */
struct etype_key;
struct etype_key *etype_key_new(const struct etype *e, const uint8_t *key, uint32_t usage);
void etype_key_free(struct etype_key *k);
DEFINE_CLEANUP_PTR(etype_key, struct etype_key, etype_key_free)

/* buf[0, 16) is the confounder, buf[16, len) the message; encrypts in place and writes mac_len bytes
 * at buf + len.  False: the library failed, and the buffer is wiped. */
bool etype_encrypt(struct etype_key *k, uint8_t *buf, size_t len);
/* The inverse, len with the MAC: the message is buf[16, len - mac_len).  False: not encrypted with
 * this key, or changed; the buffer is then garbage. */
bool etype_decrypt(struct etype_key *k, uint8_t *buf, size_t len);

/* The keyed checksum of two pieces, one after the other. */
bool etype_mic(struct etype_key *k, const void *a, size_t a_len, const void *b, size_t b_len,
	uint8_t *mic);
bool etype_mic_ok(struct etype_key *k, const void *a, size_t a_len, const void *b, size_t b_len,
	const uint8_t *mic);
