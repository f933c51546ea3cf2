/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who is signed in, and how often somebody tried in vain.  Ids are 128 random bits in hex.  A session ends
 * after SESSION_IDLE_NS without a request, SESSION_LIFE_NS after it began, and with the token.  Bounded: with
 * all places taken the one that was idle for longest goes.  Safe from any thread. */
#pragma once
#include "cell/base/clk.h"
#include "webui/web.h"

enum { SESSION_ID_LEN = 32, SESSIONS_MAX = 256, SESSION_LINKS_MAX = 8 };
#define SESSION_IDLE_NS SEC(30 * 60)
#define SESSION_LIFE_NS SEC(10 * 3600)
#define SESSION_LINK_NS SEC(10 * 60)

struct session {
	char id[SESSION_ID_LEN + 1], csrf[SESSION_ID_LEN + 1];
	struct web_identity *who;
	char from[48];
	mono_ns began, used;
	unsigned holders;
	bool ended;
};
struct sessions;
struct sessions *sessions_new(const struct web_ports *ports);
void sessions_free(struct sessions *s);
/* Takes `who`, also on failure.  Held for the caller. */
struct session *sessions_begin(struct sessions *s, struct web_identity *who, const char *from, mono_ns now);
/* The live session of that id, held; NULL. */
struct session *sessions_hold(struct sessions *s, const char *id, mono_ns now);
bool sessions_alive(struct sessions *s, const struct session *x, mono_ns now); /* of a held one */
void sessions_let(struct sessions *s, struct session *x);
void sessions_end(struct sessions *s, struct session *x);
void sessions_end_all(struct sessions *s, const char *name);
unsigned sessions_count(struct sessions *s, mono_ns now);

void sessions_link(struct sessions *s, char out[SESSION_ID_LEN + 1], mono_ns now);
bool sessions_link_use(struct sessions *s, const char *link, mono_ns now); /* true once */

/* Attempts: false while `user` from `from`, or everybody together, failed too often. */
bool sessions_may_try(struct sessions *s, const char *user, const char *from, mono_ns now);
void sessions_failed(struct sessions *s, const char *user, const char *from, mono_ns now);

/* Equal, in a time that does not tell where they differ. */
bool session_same(const char *a, const char *b);
