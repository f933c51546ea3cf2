/* SPDX-License-Identifier: BSD-2-Clause
 * A Kerberos session key of any kind becomes the 8 bytes that fcrypt takes.
 * Source: protocol rx-security.md §5.3; tests/vectors/sec/kdf. */
#include "rx/sec/rxkad.h"

#include "cell/base/mem.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

enum { KEY_MAX = 256 };

/* Weak and semi-weak DES keys. */
static const uint8_t weak[][8] = {
	{0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01},
	{0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe},
	{0x1f, 0x1f, 0x1f, 0x1f, 0x0e, 0x0e, 0x0e, 0x0e},
	{0xe0, 0xe0, 0xe0, 0xe0, 0xf1, 0xf1, 0xf1, 0xf1},
	{0x01, 0xfe, 0x01, 0xfe, 0x01, 0xfe, 0x01, 0xfe},
	{0xfe, 0x01, 0xfe, 0x01, 0xfe, 0x01, 0xfe, 0x01},
	{0x1f, 0xe0, 0x1f, 0xe0, 0x0e, 0xf1, 0x0e, 0xf1},
	{0xe0, 0x1f, 0xe0, 0x1f, 0xf1, 0x0e, 0xf1, 0x0e},
	{0x01, 0xe0, 0x01, 0xe0, 0x01, 0xf1, 0x01, 0xf1},
	{0xe0, 0x01, 0xe0, 0x01, 0xf1, 0x01, 0xf1, 0x01},
	{0x1f, 0xfe, 0x1f, 0xfe, 0x0e, 0xfe, 0x0e, 0xfe},
	{0xfe, 0x1f, 0xfe, 0x1f, 0xfe, 0x0e, 0xfe, 0x0e},
	{0x01, 0x1f, 0x01, 0x1f, 0x01, 0x0e, 0x01, 0x0e},
	{0x1f, 0x01, 0x1f, 0x01, 0x0e, 0x01, 0x0e, 0x01},
	{0xe0, 0xfe, 0xe0, 0xfe, 0xf1, 0xfe, 0xf1, 0xfe},
	{0xfe, 0xe0, 0xfe, 0xe0, 0xfe, 0xf1, 0xfe, 0xf1},
};

bool rxkad_des_fix(uint8_t key[8])
{
	for (int i = 0; i < 8; i++) {
		uint8_t bits = key[i] & 0xfe;
		key[i] = (uint8_t)(bits | !(__builtin_popcount(bits) & 1));
	}
	for (size_t i = 0; i < ARRAY_SIZE(weak); i++)
		if (memcmp(key, weak[i], 8) == 0)
			return false;
	return true;
}

/* 3DES: each group of eight bytes loses its parity bits; the last byte's seven bits fill them. */
static size_t compress_3des(const uint8_t *key, size_t len, uint8_t *out)
{
	size_t n = 0;
	for (size_t at = 0; at + 8 <= len; at += 8)
		for (int j = 0; j < 7; j++)
			out[n++] = (uint8_t)((key[at + (size_t)j] & 0xfe) |
					     (key[at + 7] >> (j + 1) & 1));
	return n;
}

afs_err rxkad_kdf(int32_t enctype, const uint8_t *key, size_t len, uint8_t out[8])
{
	if (enctype >= 1 && enctype <= 3) {
		if (len != 8)
			return AFS_EBADTICKET;
		memcpy(out, key, 8);
		return AFS_OK;
	}
	if (enctype <= 0 || enctype == 4 || enctype == 6 || (enctype >= 8 && enctype <= 15) ||
		len < 7 || len > KEY_MAX)
		return AFS_EBADTICKET;

	uint8_t k[KEY_MAX];
	if (enctype == 5 || enctype == 7 || enctype == 16) {
		if (len % 8)
			return AFS_EBADTICKET;
		len = compress_3des(key, len, k);
	} else {
		memcpy(k, key, len);
	}

	afs_err err = AFS_EBADTICKET;
	for (int i = 1; i < 256 && err == AFS_EBADTICKET; i++) {
		const uint8_t text[11] = {(uint8_t)i, 'r', 'x', 'k', 'a', 'd', 0, 0, 0, 0, 64};
		uint8_t mac[EVP_MAX_MD_SIZE];
		unsigned mac_len = sizeof(mac);
		if (!HMAC(EVP_md5(), k, (int)len, text, sizeof(text), mac, &mac_len) || mac_len < 8)
			err = AFS_ENOMEM;
		else if (rxkad_des_fix(mac))
			err = AFS_OK;
		if (err == AFS_OK)
			memcpy(out, mac, 8);
		explicit_bzero(mac, sizeof(mac));
	}
	explicit_bzero(k, sizeof(k));
	return err;
}
