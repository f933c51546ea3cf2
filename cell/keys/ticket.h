/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What is inside tickets: pure functions of bytes, keys and time.  This folder's own.
 * Source: RFC 4120 §5.3; protocol rx-security.md §5, §7.1. */
#pragma once
#include "cell/keys/der.h"
#include "rx/sec/rxkad.h"

enum { TICKET_V5_PART = 213, TICKET_V5 = 256, TICKET_MAX = 12000 };

/* The sealed part of a Kerberos 5 ticket, still in the bytes given. */
struct k5_sealed {
	int32_t enctype, kvno; /* kvno 0: none was given */
	struct der_bytes cipher;
};
/* `kind` TICKET_V5 or TICKET_V5_PART.  AFS_EBADTICKET. */
afs_err k5_sealed_dec(int32_t kind, const uint8_t *ticket, size_t len, struct k5_sealed *out);
/* Writes the EncryptedData of type 213; false when it does not fit.  *len: out. */
bool k5_sealed_enc(const struct k5_sealed *s, uint8_t *out, size_t cap, size_t *len);

/* An EncTicketPart after decryption.  Trailing bytes are the padding of some enctypes.  Judges flags,
 * times, key and names.  AFS_EBADTICKET, ENOAUTH, EEXPIRED, ENOMEM. */
afs_err k5_part_dec(
	const uint8_t *part, size_t len, wall_ns now, bool allow_dotted, struct rxkad_ticket *out);

/* The plaintext of a localauth ticket with this session key: byte for byte what OpenAFS makes. */
enum { K5_LOCAL_PART_MAX = 256 };
bool k5_local_part_enc(const uint8_t session[8], uint8_t *out, size_t cap, size_t *len);

/* Kerberos 4 style; `plain` is decrypted.  AFS_EBADTICKET, ENOAUTH, EEXPIRED. */
afs_err k4_dec(const uint8_t *plain, size_t len, wall_ns now, struct rxkad_ticket *out);
/* DES-PCBC with key = iv, in place. */
void k4_decrypt(const uint8_t key[8], uint8_t *data, size_t len);

/* The time rules of rxkad for tickets of every kind.  `never`: the ticket says that it does not end. */
afs_err ticket_times(wall_ns begins, wall_ns expires, bool never, wall_ns now, wall_ns skew);

/* A Kerberos 5 principal as AFS name parts.  AFS_EBADTICKET: not one that AFS can tell from others. */
afs_err ticket_name(const struct der_bytes *comp, size_t n, struct der_bytes realm,
	bool allow_dotted, struct rxkad_ticket *out);
