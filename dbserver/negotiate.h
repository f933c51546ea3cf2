/* SPDX-License-Identifier: BSD-2-Clause
 *
 * RXGK: clients turn a Kerberos ticket into an rxgk token here, through GSS.  It stands on the database
 * servers' ports, where clients look for it.
 *
 * The acceptor is afs-rxgk/_afs.<cell>, whose key is in a keytab of its own.  One pass must establish the
 * context, as Kerberos does; a mechanism that needs more is refused, so that a server keeps nothing
 * between calls.
 *
 * Source: protocol rx-security.md §11.7. */
#pragma once
#include "cell/keys/gk.h"
#include "rx/rpc/rpc.h"

struct negotiator;
struct negotiator_config {
	const char *cell;
	const char *keytab; /* of afs-rxgk/_afs.<cell>; copied */
	struct gk *gk;      /* outlives it */
	uint32_t lifetime, bytelife; /* of transport keys, at most; 0: 10 hours, 2^30 bytes */
	void (*done)(void *ctx, const struct rpc_call *call, const void *in, afs_err err, int32_t code, int64_t took_ns);
	void *ctx;
};
/* AFS_ENOMEM.  The keytab is read at each call: it may come later. */
afs_err negotiator_new(const struct negotiator_config *config, struct negotiator **out);
void negotiator_free(struct negotiator *n);
/* Fills one service; 1. */
size_t negotiator_services(struct negotiator *n, struct rpc_service *out);
