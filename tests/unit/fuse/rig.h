/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A whole small cell in one process, in a network and mount namespace of its own: file server, VL
 * server, and cache managers that mount it.  Everything is open to everybody. */
#pragma once
#include "client/client.h"
#include "fileserver/store/store.h"

enum { RIG_CLIENTS = 3 };
#define RIG_IP 0x7f000001u
#ifndef RIG_DIRECT /* tests are also built with it true */
#define RIG_DIRECT false
#endif

struct rig_config {
	unsigned clients;
	uint64_t cache_bytes; /* of each; 0: 1 GiB */
	bool no_mount;
	bool direct;    /* the clients ask the server without the network */
	bool slow_path;  /* plain datagrams of Ethernet's size, as between two machines */
	int64_t dead_ns; /* of the clients; 0: the default */
	const char *dir; /* NULL: a scratch directory */
};
struct rig {
	char *dir;
	bool own_dir;
	char *mounts[RIG_CLIENTS]; /* DIR/m1, DIR/m2, ... */
	struct client *clients[RIG_CLIENTS];
	struct rig_parts *parts;
};

/* Into namespaces of our own; false when that is not allowed (not root). */
bool rig_isolate(void);
struct rig *rig_start(const struct rig_config *config);
void rig_stop(struct rig *r);
/* Another client, beside those that run, or one that was ended again. */
void rig_client_start(struct rig *r, unsigned i);
void rig_client_stop(struct rig *r, unsigned i);
/* Volume `name` with id `id`, everything allowed to everybody; not mounted anywhere. */
void rig_volume(struct rig *r, uint32_t id, const char *name);
struct vs_store *rig_store(struct rig *r);
/* Stops and starts the file server (its memory of promises is lost). */
void rig_server_restart(struct rig *r);
void rig_server_stop(struct rig *r);
void rig_server_start(struct rig *r);
/* Quota of root.cell: so much more than is used; 0: none. */
void rig_quota(struct rig *r, uint64_t more_kib);
/* root.cell as the volume server claims it: enum vs_claim. */
void rig_claim(struct rig *r, int claim);
#define RIG_CELL "rig.test"
