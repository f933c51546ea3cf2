/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rxgk on DATA packets, and the keys that wear out.  Any thread may seal and open at any time.
 * Source: protocol rx-security.md §11.2-11.4. */
#include "rx/sec/rxgk_conn.h"

#include "cell/base/mem.h"

#include <sched.h>

enum {
	MANY = 64,
	BEHIND = RXGK_KEYS - 2, /* a packet sent again has the key it was sealed with at first */
	BYTELIFE_LEAST = 22,    /* log2: more than is ever under way, so that the peer is never two keys behind */
};

/* --- keys ---------------------------------------------------------------------------------------- */

struct etype_key *rxgk_transport_key(const struct rxgk *g, uint32_t number, uint32_t usage)
{
	uint8_t seed[20], tk[ETYPE_KEY_MAX];
	const uint64_t start = htobe64(g->start);
	rxgk_put32(seed, g->epoch);
	rxgk_put32(seed + 4, g->cid);
	memcpy(seed + 8, &start, 8);
	rxgk_put32(seed + 16, number);
	struct etype_key *k = NULL;
	if (etype_prf_plus(g->etype, g->terms.k0, seed, sizeof(seed), tk, g->etype->key_len) == AFS_OK)
		k = etype_key_new(g->etype, tk, usage);
	explicit_bzero(tk, sizeof(tk));
	return k;
}

static void drop(struct rxgk_key *k)
{
	etype_key_free(k->out);
	etype_key_free(k->in);
	k->out = k->in = NULL;
	k->made = false;
}

/* Makes key `number` unless it is there.  Its place held one that nobody accepts any more; who still
 * seals with that is waited for. */
static bool make_key(struct rxgk *g, uint32_t number)
{
	struct rxgk_key *k = &g->key[number % RXGK_KEYS];
	const uint32_t usage = g->terms.level == RX_LEVEL_CRYPT ? USE_CLIENT_ENCRYPT : USE_CLIENT_MIC;
	mtx_lock(&g->lock);
	bool ok = k->made && k->number == number;
	if (!ok) {
		struct etype_key *out = rxgk_transport_key(g, number, usage + (g->is_server ? 2 : 0));
		struct etype_key *in = rxgk_transport_key(g, number, usage + (g->is_server ? 0 : 2));
		ok = out && in;
		if (ok) {
			uint32_t none = 0;
			/* the top bit keeps newcomers out while the key is exchanged */
			while (!atomic_compare_exchange_weak(&k->users, &none, UINT32_C(1) << 31)) {
				none = 0;
				sched_yield();
			}
			drop(k);
			k->out = TAKE(out);
			k->in = TAKE(in);
			k->number = number;
			k->made = true;
			atomic_store(&k->users, 0);
		}
		etype_key_free(out);
		etype_key_free(in);
	}
	mtx_unlock(&g->lock);
	return ok;
}

static struct rxgk_key *use(struct rxgk *g, uint32_t number)
{
	struct rxgk_key *k = &g->key[number % RXGK_KEYS];
	uint32_t users = atomic_load_explicit(&k->users, memory_order_relaxed);
	do {
		if (users >> 31)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(
		&k->users, &users, users + 1, memory_order_acquire, memory_order_relaxed));
	if (k->made && k->number == number)
		return k;
	atomic_fetch_sub_explicit(&k->users, 1, memory_order_release);
	return NULL;
}

static void done(struct rxgk_key *k) { atomic_fetch_sub_explicit(&k->users, 1, memory_order_release); }

static void advance(struct rxgk *g, uint32_t to, mono_ns at)
{
	uint32_t from = to - 1;
	if (atomic_compare_exchange_strong(&g->number, &from, to)) {
		atomic_store(&g->bytes, 0);
		atomic_store(&g->made_at, at);
	}
}

/* Counts what was done with the current key and goes to the next when it is worn out.  When memory is
 * short the old one serves on, and the next packet tries again. */
static void wear(struct rxgk *g, size_t bytes, mono_ns at)
{
	const uint64_t all = atomic_fetch_add_explicit(&g->bytes, bytes, memory_order_relaxed) + bytes;
	const uint32_t number = atomic_load(&g->number);
	mono_ns since = atomic_load_explicit(&g->made_at, memory_order_relaxed);
	if (!since)
		atomic_compare_exchange_strong(&g->made_at, &since, at);
	const bool worn = (g->terms.bytelife && g->terms.bytelife < 63 && all >> MAX(g->terms.bytelife, BYTELIFE_LEAST)) ||
			  (g->terms.lifetime && since && at - since > SEC((mono_ns)g->terms.lifetime));
	if (worn && make_key(g, number + 1))
		advance(g, number + 1, at);
}

void rxgk_make_room(struct rxgk *g)
{
	const bool crypt = g->terms.level == RX_LEVEL_CRYPT, auth = g->terms.level == RX_LEVEL_AUTH;
	g->sec.header = crypt ? ETYPE_CONFOUNDER + RXGK_HEAD : auth ? g->etype->mac_len : 0;
	g->sec.trailer = crypt ? g->etype->mac_len : 0;
}

afs_err rxgk_start_keys(struct rxgk *g, uint32_t number)
{
	const bool crypt = g->terms.level == RX_LEVEL_CRYPT, auth = g->terms.level == RX_LEVEL_AUTH;
	if ((crypt || auth) && !make_key(g, number))
		return AFS_ENOMEM;
	atomic_store(&g->number, number);
	rxgk_make_room(g);
	return AFS_OK;
}

void rxgk_free_keys(struct rxgk *g)
{
	for (int i = 0; i < RXGK_KEYS; i++)
		drop(&g->key[i]);
}

/* --- packets ----------------------------------------------------------------------------------- */

static struct rxgk *of(const struct rx_sec *s)
{
	return container_of((struct rx_sec *)(uintptr_t)s, struct rxgk, sec);
}

static void head(const struct rxgk *g, const struct rx_sec_packet *p, size_t data_len, uint8_t out[RXGK_HEAD])
{
	rxgk_put32(out, p->epoch);
	rxgk_put32(out + 4, p->cid);
	rxgk_put32(out + 8, p->call);
	rxgk_put32(out + 12, p->seq);
	rxgk_put32(out + 16, g->index);
	rxgk_put32(out + 20, (uint32_t)data_len);
}

/* The current key, or the one after where it was exchanged under our hands. */
static struct rxgk_key *current(struct rxgk *g)
{
	for (;; sched_yield()) {
		struct rxgk_key *k = use(g, atomic_load(&g->number));
		if (k)
			return k;
	}
}

static void seal_one(struct rxgk *g, struct rxgk_key *k, const struct rx_sec_packet *p, const uint8_t *confounder,
	uint8_t *body, size_t data_len, size_t *body_len)
{
	*body_len = g->sec.header + data_len + g->sec.trailer;
	if (g->terms.level == RX_LEVEL_CRYPT) {
		memcpy(body, confounder, ETYPE_CONFOUNDER);
		head(g, p, data_len, body + ETYPE_CONFOUNDER);
		etype_encrypt(k->out, body, g->sec.header + data_len);
	} else {
		uint8_t h[RXGK_HEAD];
		head(g, p, data_len, h);
		if (!etype_mic(k->out, h, sizeof(h), body + g->sec.header, data_len, body))
			memset(body, 0, g->sec.header);
	}
}

void rxgk_seal_many(
	const struct rx_sec *s, const struct rx_sec_packet *first, struct rx_sec_body *b, size_t n)
{
	struct rxgk *g = of(s);
	struct rx_sec_packet p = *first;
	if (g->terms.level == RX_LEVEL_CLEAR) {
		for (size_t i = 0; i < n; i++) {
			b[i].body_len = b[i].data_len;
			b[i].cksum = (uint16_t)atomic_load(&g->number);
		}
		return;
	}
	if (!s->ready) {
		/* there was no memory for the keys (client_bind): nothing leaves in clear, and the peer refuses */
		for (size_t i = 0; i < n; i++) {
			b[i].body_len = b[i].data_len;
			memset(b[i].body, 0, b[i].data_len);
			b[i].cksum = 0;
		}
		return;
	}
	for (size_t at = 0; at < n;) {
		uint8_t confounder[MANY][ETYPE_CONFOUNDER];
		const size_t m = MIN(n - at, (size_t)MANY);
		size_t bytes = 0;
		if (g->terms.level == RX_LEVEL_CRYPT)
			g->random.fill(g->random.ctx, confounder, m * ETYPE_CONFOUNDER);
		struct rxgk_key *k = current(g);
		for (size_t i = 0; i < m; i++, at++) {
			p.seq = b[at].seq;
			seal_one(g, k, &p, confounder[i], b[at].body, b[at].data_len, &b[at].body_len);
			b[at].cksum = (uint16_t)k->number;
			bytes += b[at].body_len;
		}
		done(k);
		wear(g, bytes, p.at);
	}
}

uint16_t rxgk_seal(const struct rx_sec *s, const struct rx_sec_packet *p, uint8_t *body, size_t data_len,
	size_t *body_len)
{
	struct rx_sec_body one = {.seq = p->seq, .body = body, .data_len = data_len};
	rxgk_seal_many(s, p, &one, 1);
	*body_len = one.body_len;
	return one.cksum;
}

static afs_err open_one(struct rxgk *g, struct rxgk_key *k, const struct rx_sec_packet *p, uint8_t *body,
	size_t body_len, size_t *off, size_t *data_len)
{
	const size_t room = (size_t)g->sec.header + g->sec.trailer;
	uint8_t h[RXGK_HEAD];
	if (body_len < room)
		return AFS_EPACKETSHORT;
	*off = g->sec.header;
	*data_len = body_len - room;
	if (g->terms.level == RX_LEVEL_AUTH) {
		head(g, p, *data_len, h);
		return etype_mic_ok(k->in, h, sizeof(h), body + g->sec.header, *data_len, body) ? AFS_OK : AFS_ESEALED;
	}
	if (!etype_decrypt(k->in, body, body_len))
		return AFS_ESEALED;
	const uint32_t says = rxgk_get32(body + ETYPE_CONFOUNDER + RXGK_HEAD - 4);
	if (says > *data_len)
		return AFS_EDATALEN;
	*data_len = says;
	head(g, p, says, h);
	return memcmp(h, body + ETYPE_CONFOUNDER, RXGK_HEAD) == 0 ? AFS_OK : AFS_ESEALED;
}

afs_err rxgk_open(const struct rx_sec *s, const struct rx_sec_packet *p, uint16_t cksum, uint8_t *body,
	size_t body_len, size_t *off, size_t *data_len)
{
	struct rxgk *g = of(s);
	if (!s->ready)
		return AFS_ESEALED;
	const uint32_t now = atomic_load(&g->number);
	const uint32_t oldest = now > BEHIND ? now - BEHIND : 0;
	const uint32_t number = oldest + (uint16_t)(cksum - (uint16_t)oldest);
	if (number > now + 1)
		return AFS_EUNKNOWNKEY;
	if (g->terms.level == RX_LEVEL_CLEAR) {
		*off = 0;
		*data_len = body_len;
		return AFS_OK;
	}
	struct rxgk_key *k = use(g, number);
	if (!k && number > now && make_key(g, number))
		k = use(g, number);
	if (!k)
		return AFS_EUNKNOWNKEY;
	afs_err err = open_one(g, k, p, body, body_len, off, data_len);
	done(k);
	if (err == AFS_OK && number > now)
		advance(g, number, p->at);
	if (err == AFS_OK)
		wear(g, body_len, p->at);
	return err;
}
