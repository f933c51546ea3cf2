/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Kerberos 4 style tickets, read only in a laboratory with `weak_crypto`: real DES in PCBC mode, and
 * a fixed sequence of fields.  Source: protocol rx-security.md §5.2; tests/vectors/keys/tickets. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "cell/keys/ticket.h"

#include <openssl/des.h>
#include <string.h>

static const wall_ns skew = SEC(15 * 60);

/* Lifetime codes 0x80 to 0xbf, in seconds. */
static const int32_t lifetimes[64] = {38400, 41055, 43894, 46929, 50174, 53643, 57352, 61318, 65558,
	70091, 74937, 80119, 85658, 91581, 97914, 104684, 111922, 119661, 127935, 136781, 146239,
	156350, 167161, 178720, 191077, 204289, 218415, 233517, 249664, 266926, 285383, 305116,
	326213, 348769, 372885, 398668, 426234, 455705, 487215, 520904, 556921, 595430, 636601,
	680618, 727680, 777995, 831789, 889303, 950794, 1016537, 1086825, 1161973, 1242318, 1328218,
	1420057, 1518247, 1623226, 1735464, 1855462, 1983758, 2120925, 2267576, 2424367, 2592000};

void k4_decrypt(const uint8_t key[8], uint8_t *data, size_t len)
{
	DES_cblock k, iv, x;
	DES_key_schedule s;
	memcpy(k, key, 8);
	memcpy(iv, key, 8);
	DES_set_key_unchecked(&k, &s);
	for (size_t at = 0; at + 8 <= len; at += 8) {
		DES_cblock c, p;
		memcpy(c, data + at, 8);
		DES_ecb_encrypt(&c, &p, &s, DES_DECRYPT);
		for (int i = 0; i < 8; i++) {
			p[i] ^= iv[i];
			x[i] = p[i] ^ c[i];
		}
		memcpy(iv, x, 8);
		memcpy(data + at, p, 8);
	}
	explicit_bzero(&s, sizeof(s));
	explicit_bzero(k, sizeof(k));
}

/* A NUL-terminated string of at most RX_NAME_MAX bytes with its NUL. */
static bool text_get(const uint8_t **p, const uint8_t *end, char out[RX_NAME_MAX])
{
	size_t room = (size_t)(end - *p);
	const uint8_t *nul = memchr(*p, 0, room < RX_NAME_MAX ? room : RX_NAME_MAX);
	if (!nul)
		return false;
	for (const uint8_t *c = *p; c < nul; c++)
		if (*c < 0x20 || *c == 0x7f || *c == '@' || *c == ':')
			return false;
	memcpy(out, *p, (size_t)(nul - *p) + 1);
	*p = nul + 1;
	return true;
}

afs_err k4_dec(const uint8_t *plain, size_t len, wall_ns now, struct rxkad_ticket *out)
{
	const uint8_t *p = plain, *end = plain + len;
	struct rxkad_ticket t = {};
	char service[RX_NAME_MAX], service_instance[RX_NAME_MAX];
	if (len < 1)
		return AFS_EBADTICKET;
	bool little = *p++ & 1;
	if (!text_get(&p, end, t.name) || !text_get(&p, end, t.instance) ||
		!text_get(&p, end, t.cell) || end - p < 4 + 8 + 1 + 4)
		return AFS_EBADTICKET;
	p += 4; /* host address */
	memcpy(t.session_key, p, 8);
	p += 8;
	unsigned life = *p++;
	uint32_t start =
		little ? (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0]
		       : (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	p += 4;
	if (!text_get(&p, end, service) || !text_get(&p, end, service_instance) || !t.name[0] ||
		strchr(t.name, '.'))
		return AFS_EBADTICKET;
	/* The length is the fields' own, rounded up; old tickets were a fixed 56 bytes. */
	if (len != ((size_t)(p - plain) + 7) / 8 * 8 && len != 56)
		return AFS_EBADTICKET;

	bool never = life == 0xff;
	int64_t seconds = 30 * 86400;
	if (life < 0x80)
		seconds = (int64_t)life * 5 * 60;
	else if (life < 0xc0)
		seconds = lifetimes[life - 0x80];
	t.begins = SEC(start);
	t.expires = never ? 0 : t.begins + SEC(seconds);
	TRY(ticket_times(t.begins, t.expires, never, now, skew));
	*out = t;
	explicit_bzero(&t, sizeof(t));
	return AFS_OK;
}
