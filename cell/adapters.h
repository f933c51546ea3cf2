/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Joins parts that may not know each other: who a caller is, who administers, where servers are.
 * What a part asks in its ports.h is answered here by another part, or by the network. */
#pragma once
#include "cell/conf/conf.h"
#include "cell/keys/keys.h"
#include "cell/self.h"
#include "dbserver/dbserver.h"
#include "fileserver/ports.h"

enum { ADAPTERS_ADDRS_MAX = 16 };

/* Addresses that others reach this machine by: `listen`, or every address for 0.0.0.0; loopback only
 * when there is no other. */
size_t adapters_own_ips(const struct conf *conf, uint32_t *out, size_t cap);
/* The cell's database servers with `port`: as configured, or this machine. */
size_t adapters_database_servers(const struct conf *conf, uint16_t port, struct rx_addr *out, size_t cap);
/* Path of the keytab with the cell's key; the caller's. */
char *adapters_keytab(const struct conf *conf);

/* One per cell; answers from any thread. */
struct adapters;
/* `realm` is the cell's realm, `local` further ones whose users are its own. */
struct adapters *adapters_new(const char *cell, const char *realm, const struct conf_names *local);
void adapters_free(struct adapters *a);
const struct keys_realms *adapters_realms(const struct adapters *a);
/* The list of administrators is now this (copied). */
afs_err adapters_set_administrators(struct adapters *a, const struct conf_names *names);
/* The i-th of them; false past the end. */
bool adapters_administrator(struct adapters *a, size_t i, char *out, size_t size);
/* Superusers of the servers that are no administrators: those that the overseer was told (copied). */
afs_err adapters_set_superusers(struct adapters *a, const struct conf_names *names);
/* Where the people port looks: `pt` in this process, or NULL and through `self`. */
void adapters_set_people(struct adapters *a, struct pt *pt, struct self *self);

/* ctx of these is a struct adapters. */
void adapters_afs_name(void *ctx, const struct rx_caller *caller, struct keys_name *out);
bool adapters_superuser(void *ctx, const struct rx_caller *caller);
void adapters_people_port(struct adapters *a, struct fs_people_port *out);
