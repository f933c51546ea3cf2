/* SPDX-License-Identifier: BSD-2-Clause */
#include "webui/session.h"

#include "cell/base/mem.h"
#include "cell/base/mtx.h"
#include "cell/base/rand.h"

#include <stdio.h>
#include <string.h>

enum { TRIES_PLACES = 512, TRIES_MAX = 5, TRIES_ALL_MAX = 60 };
#define TRIES_WINDOW_NS SEC(60)

struct tries {
	uint64_t who;
	unsigned n;
	mono_ns since;
};

struct sessions {
	struct web_ports ports;
	struct mtx lock;
	struct session *list[SESSIONS_MAX];
	struct {
		char id[SESSION_ID_LEN + 1];
		mono_ns until;
	} links[SESSION_LINKS_MAX];
	size_t next_link;
	struct tries tries[TRIES_PLACES], all;
	uint64_t salt;
};

static void random_id(char out[SESSION_ID_LEN + 1])
{
	uint8_t b[SESSION_ID_LEN / 2];
	rand_bytes(b, sizeof(b));
	for (size_t i = 0; i < sizeof(b); i++)
		snprintf(out + 2 * i, 3, "%02x", b[i]);
}

bool session_same(const char *a, const char *b)
{
	size_t n = strlen(a);
	if (strlen(b) != n)
		return false;
	unsigned char d = 0;
	for (size_t i = 0; i < n; i++)
		d |= (unsigned char)(a[i] ^ b[i]);
	return d == 0;
}

struct sessions *sessions_new(const struct web_ports *ports)
{
	struct sessions *s = mem_new(struct sessions);
	if (!s)
		return NULL;
	s->ports = *ports;
	s->salt = rand_u64();
	mtx_init(&s->lock, RANK_LEAF);
	return s;
}

static void destroy(struct sessions *s, struct session *x)
{
	s->ports.release(s->ports.ctx, x->who);
	explicit_bzero(x, sizeof(*x));
	mem_free(x);
}

void sessions_free(struct sessions *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (s->list[i])
			destroy(s, s->list[i]);
	mtx_fini(&s->lock);
	explicit_bzero(s, sizeof(*s));
	mem_free(s);
}

static bool alive_locked(const struct sessions *s, const struct session *x, mono_ns now)
{
	int64_t expires = s->ports.expires(x->who);
	return !x->ended && now - x->used < SESSION_IDLE_NS && now - x->began < SESSION_LIFE_NS && (!expires || clk_wall() < expires);
}

/* Out of the table; gone when nobody holds it, else with its last holder. */
static struct session *drop_locked(struct sessions *s, size_t i)
{
	struct session *x = s->list[i];
	x->ended = true;
	s->list[i] = NULL;
	return x->holders ? NULL : x;
}

struct session *sessions_begin(struct sessions *s, struct web_identity *who, const char *from, mono_ns now)
{
	struct session *x = mem_new(struct session), *gone = NULL;
	if (!x) {
		s->ports.release(s->ports.ctx, who);
		return NULL;
	}
	random_id(x->id);
	random_id(x->csrf);
	x->who = who;
	snprintf(x->from, sizeof(x->from), "%s", from);
	x->began = x->used = now;
	x->holders = 1;
	mtx_lock(&s->lock);
	size_t at = 0;
	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		if (!s->list[i] || !alive_locked(s, s->list[i], now)) {
			at = i;
			break;
		}
		if (s->list[i]->used < s->list[at]->used)
			at = i;
	}
	if (s->list[at])
		gone = drop_locked(s, at);
	s->list[at] = x;
	mtx_unlock(&s->lock);
	if (gone)
		destroy(s, gone);
	return x;
}

struct session *sessions_hold(struct sessions *s, const char *id, mono_ns now)
{
	struct session *x = NULL;
	mtx_lock(&s->lock);
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (s->list[i] && session_same(s->list[i]->id, id) && alive_locked(s, s->list[i], now))
			x = s->list[i];
	if (x) {
		x->used = now;
		x->holders++;
	}
	mtx_unlock(&s->lock);
	return x;
}

bool sessions_alive(struct sessions *s, const struct session *x, mono_ns now)
{
	mtx_lock(&s->lock);
	bool yes = alive_locked(s, x, now);
	mtx_unlock(&s->lock);
	return yes;
}

void sessions_let(struct sessions *s, struct session *x)
{
	if (!x)
		return;
	mtx_lock(&s->lock);
	bool last = --x->holders == 0, listed = false;
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		listed = listed || s->list[i] == x;
	mtx_unlock(&s->lock);
	if (last && !listed)
		destroy(s, x);
}

void sessions_end(struct sessions *s, struct session *x)
{
	mtx_lock(&s->lock);
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (s->list[i] == x)
			(void)drop_locked(s, i); /* the caller holds it */
	mtx_unlock(&s->lock);
}

void sessions_end_all(struct sessions *s, const char *name)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		struct session *gone = NULL;
		mtx_lock(&s->lock);
		if (s->list[i] && strcmp(s->ports.name(s->list[i]->who), name) == 0)
			gone = drop_locked(s, i);
		mtx_unlock(&s->lock);
		if (gone)
			destroy(s, gone);
	}
}

unsigned sessions_count(struct sessions *s, mono_ns now)
{
	unsigned n = 0;
	mtx_lock(&s->lock);
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		n += s->list[i] && alive_locked(s, s->list[i], now);
	mtx_unlock(&s->lock);
	return n;
}

/* --- links ---------------------------------------------------------------------------------- */

void sessions_link(struct sessions *s, char out[SESSION_ID_LEN + 1], mono_ns now)
{
	random_id(out);
	mtx_lock(&s->lock);
	memcpy(s->links[s->next_link].id, out, SESSION_ID_LEN + 1);
	s->links[s->next_link].until = now + SESSION_LINK_NS;
	s->next_link = (s->next_link + 1) % SESSION_LINKS_MAX;
	mtx_unlock(&s->lock);
}

bool sessions_link_use(struct sessions *s, const char *link, mono_ns now)
{
	bool good = false;
	mtx_lock(&s->lock);
	for (size_t i = 0; i < SESSION_LINKS_MAX; i++)
		if (s->links[i].id[0] && session_same(s->links[i].id, link)) {
			good = now < s->links[i].until;
			explicit_bzero(&s->links[i], sizeof(s->links[i]));
		}
	mtx_unlock(&s->lock);
	return good;
}

/* --- attempts ------------------------------------------------------------------------------- */

static uint64_t hash(const struct sessions *s, const char *user, const char *from)
{
	uint64_t h = s->salt ^ UINT64_C(14695981039346656037);
	for (const char *p = user; *p; p++)
		h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
	h = (h ^ 0x100) * UINT64_C(1099511628211);
	for (const char *p = from; *p; p++)
		h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
	return h;
}

static bool spent(const struct tries *t, unsigned max, mono_ns now) { return t->n >= max && now - t->since < TRIES_WINDOW_NS; }

static void count(struct tries *t, uint64_t who, mono_ns now)
{
	if (t->who != who || now - t->since >= TRIES_WINDOW_NS)
		*t = (struct tries){.who = who};
	t->n++;
	t->since = now;
}

bool sessions_may_try(struct sessions *s, const char *user, const char *from, mono_ns now)
{
	uint64_t h = hash(s, user, from);
	mtx_lock(&s->lock);
	const struct tries *t = &s->tries[h % TRIES_PLACES];
	bool may = !(t->who == h && spent(t, TRIES_MAX, now)) && !spent(&s->all, TRIES_ALL_MAX, now);
	mtx_unlock(&s->lock);
	return may;
}

void sessions_failed(struct sessions *s, const char *user, const char *from, mono_ns now)
{
	uint64_t h = hash(s, user, from);
	mtx_lock(&s->lock);
	count(&s->tries[h % TRIES_PLACES], h, now);
	count(&s->all, 0, now);
	mtx_unlock(&s->lock);
}
