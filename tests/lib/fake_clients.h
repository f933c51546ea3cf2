/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Cache managers that a file server under test calls back: a struct cb_wire over a table of clients,
 * and a diary of what they were told, a line each:
 *
 *   who 10.0.0.1:7001 / init3 ... / init ... / probe ... / break 10.0.0.1:7001 5.2.7 5.4.9
 *   (delayed breaks: "delayed")
 *
 * and people whom it knows: alice 100, bob 101, admin 1 (system:administrators), by caller name. */
#pragma once
#include "fileserver/cb/cb.h"

#include <pthread.h>
#include <stdatomic.h>

struct fake_client {
	struct rx_addr addr;
	uint8_t uuid[AFS_UUID_BYTES];
	uint32_t caps;
	bool no_uuid;       /* knows neither TellMeAboutYourself nor WhoAreYou */
	atomic_bool silent; /* answers nothing */
	atomic_bool deaf;   /* says who it is, and answers nothing else */
	unsigned ms;        /* how long each of its answers takes */
	/* runs before a CallBack is answered; may be NULL */
	void (*on_break)(struct fake_client *c, const struct AFSFid *fids, size_t n);
	void *ctx;
};
enum { FAKE_CLIENTS = 16 };
struct fake_world {
	struct fake_client clients[FAKE_CLIENTS];
	size_t n;
	pthread_mutex_t lock;
	struct buf diary;
	unsigned calling, most_calling; /* calls to clients at once */
};
void fake_world_init(struct fake_world *w);
void fake_world_fini(struct fake_world *w);
struct fake_client *fake_client_add(struct fake_world *w, uint32_t ip, uint16_t port, uint8_t uuid);
struct cb_wire fake_wire(struct fake_world *w);
/* The diary since the last time, "" when nothing was told; the caller frees it. */
char *fake_diary(struct fake_world *w);
#define assert_diary(w, want)                                                                      \
	do {                                                                                       \
		CLEANUP(str) char *diary_ = fake_diary(w);                                         \
		assert_string_equal(diary_, (want));                                               \
	} while (0)

/* `generation` moves with fake_people_changed(). */
struct fs_people_port fake_people(void);
void fake_people_changed(void);
extern atomic_uint fake_people_asked; /* identify calls */
extern atomic_bool fake_people_away;  /* identify gives AFS_EAGAIN */
/* Callers by name. */
struct rx_caller fake_caller(const char *name);
