/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rxkad on DATA packets: the header checksum, and the bodies of the three levels.  Nothing here
 * changes the object, so any thread may do it for any packet.
 *
 * Pad bytes are zero when we send and never looked at when we receive: OpenAFS sends what its buffer
 * held before.  Source: protocol rx-security.md §4.1-4.3. */
#include "rx/sec/rxkad_conn.h"

#include "cell/base/mem.h"

enum { MANY = 64 }; /* packets sealed abreast: two full turns of the wide cipher */

void rxkad_set_level(struct rxkad *k, enum rx_sec_level level)
{
	static const uint16_t header[] = {0, 4, 8};
	static const uint16_t trailer[] = {0, 4, 8};
	k->level = level;
	k->sec.header = header[level];
	k->sec.trailer = trailer[level];
}

void rxkad_set_session(struct rxkad *k, const uint8_t session[8])
{
	memcpy(k->session, session, sizeof(k->session));
	fcrypt_schedule(&k->key, session);
}

void rxkad_set_preseq(struct rxkad *k, uint32_t epoch, uint32_t cid, uint8_t index)
{
	uint8_t b[16] = {};
	rxkad_put32(b, epoch);
	rxkad_put32(b + 4, cid & ~UINT32_C(3));
	rxkad_put32(b + 12, index);
	fcrypt_pcbc_encrypt(&k->key, k->session, b, sizeof(b));
	k->preseq[0] = rxkad_get32(b + 8);
	k->preseq[1] = rxkad_get32(b + 12);
	k->index = index;
}

/* Direction and serial are no inputs: a packet sent again has the same value. */
static uint16_t checksum(const struct rxkad *k, const struct rx_sec_packet *p)
{
	uint8_t b[8];
	rxkad_put32(b, p->call ^ k->preseq[0]);
	rxkad_put32(b + 4, ((p->cid & 3) << 30 | (p->seq & 0x3fffffff)) ^ k->preseq[1]);
	fcrypt_encrypt(&k->key, b);
	uint16_t ck = (uint16_t)(b[4] << 8 | b[5]);
	return ck ? ck : 1;
}

static uint32_t length_word(const struct rx_sec_packet *p, size_t data_len)
{
	return ((p->seq ^ p->call) & 0xffff) << 16 | (uint32_t)data_len;
}

/* Writes the security header and the padding; gives the length of the body and of its part that is
 * to be encrypted. */
static size_t frame(const struct rxkad *k, const struct rx_sec_packet *p, uint8_t *body,
	size_t data_len, size_t *sealed)
{
	size_t len = k->sec.header + data_len;
	*sealed = 0;
	if (k->level == RX_LEVEL_CLEAR)
		return len;
	rxkad_put32(body, length_word(p, data_len));
	size_t padded = MAX(len, (size_t)FCRYPT_BLOCK);
	if (k->level == RX_LEVEL_CRYPT) {
		rxkad_put32(body + 4, 0);
		padded = (len + FCRYPT_BLOCK - 1) / FCRYPT_BLOCK * FCRYPT_BLOCK;
	}
	memset(body + len, 0, padded - len);
	*sealed = k->level == RX_LEVEL_CRYPT ? padded : FCRYPT_BLOCK;
	return padded;
}

/* At level auth the only block is sealed by itself, not chained. */
uint16_t rxkad_seal(const struct rx_sec *s, const struct rx_sec_packet *p, uint8_t *body,
	size_t data_len, size_t *body_len)
{
	const struct rxkad *k = container_of((struct rx_sec *)(uintptr_t)s, struct rxkad, sec);
	size_t sealed;
	*body_len = frame(k, p, body, data_len, &sealed);
	if (k->level == RX_LEVEL_CRYPT)
		fcrypt_pcbc_encrypt(&k->key, k->session, body, sealed);
	else if (k->level == RX_LEVEL_AUTH)
		fcrypt_encrypt(&k->key, body);
	return checksum(k, p);
}

void rxkad_seal_many(
	const struct rx_sec *s, const struct rx_sec_packet *first, struct rx_sec_body *b, size_t n)
{
	const struct rxkad *k = container_of((struct rx_sec *)(uintptr_t)s, struct rxkad, sec);
	struct rx_sec_packet p = *first;
	if (k->level != RX_LEVEL_CRYPT) {
		for (size_t i = 0; i < n; i++) {
			p.seq = b[i].seq;
			b[i].cksum = rxkad_seal(s, &p, b[i].body, b[i].data_len, &b[i].body_len);
		}
		return;
	}
	for (size_t at = 0; at < n;) {
		struct fcrypt_run run[MANY];
		size_t m = 0;
		for (; m < MANY && at < n; m++, at++) {
			p.seq = b[at].seq;
			run[m].data = b[at].body;
			b[at].body_len = frame(k, &p, b[at].body, b[at].data_len, &run[m].len);
			b[at].cksum = checksum(k, &p);
		}
		fcrypt_pcbc_encrypt_many(&k->key, k->session, run, m);
	}
}

afs_err rxkad_open(const struct rx_sec *s, const struct rx_sec_packet *p, uint16_t cksum,
	uint8_t *body, size_t body_len, size_t *off, size_t *data_len)
{
	const struct rxkad *k = container_of((struct rx_sec *)(uintptr_t)s, struct rxkad, sec);
	if (!s->ready || cksum != checksum(k, p))
		return AFS_ESEALED;
	if (k->level == RX_LEVEL_CLEAR) {
		*off = 0;
		*data_len = body_len;
		return AFS_OK;
	}
	if (body_len < FCRYPT_BLOCK)
		return AFS_ESEALED;
	if (k->level == RX_LEVEL_CRYPT) {
		if (body_len % FCRYPT_BLOCK)
			return AFS_ESEALED;
		fcrypt_pcbc_decrypt(&k->key, k->session, body, body_len);
	} else {
		fcrypt_decrypt(&k->key, body);
	}
	uint32_t word = rxkad_get32(body);
	if (word >> 16 != ((p->seq ^ p->call) & 0xffff))
		return AFS_ESEALED;
	size_t n = word & 0xffff;
	if (n > body_len - s->header)
		return AFS_EDATALEN;
	*off = s->header;
	*data_len = n;
	return AFS_OK;
}
