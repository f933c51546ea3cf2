/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rooms of the house, for cell.c and the verbs of the control socket. */
#pragma once
#include "cell/adapters.h"
#include "cell/audit.h"
#include "cell/base/mtx.h"
#include "cell/cell.h"
#include "cell/ctl.h"
#include "cell/keys/gk.h"
#include "cell/keys/keys.h"
#include "cell/realm/realm.h"
#include "cell/reconcile.h"
#include "cell/self.h"
#include "cell/state.h"
#include "client/client.h"
#include "dbserver/dbserver.h"
#include "dbserver/negotiate.h"
#include "fileserver/fileserver.h"
#include "fileserver/store/store.h"
#include "fileserver/volserver.h"
#include "rx/io/port.h"

enum { CELL_IPS_MAX = ADAPTERS_ADDRS_MAX + 1, CELL_PAGS_IDLE = 512 };
enum cell_role { CELL_PT, CELL_VL, CELL_FS, CELL_VOL, CELL_CLIENT, CELL_BOS, CELL_ROLES };

struct web;
struct cell_role_ports {
	struct rpc_workers *workers;
	struct rpc_port *ports[CELL_IPS_MAX]; /* one per address */
	size_t port_count;
};

struct cell {
	struct conf *conf;
	struct state *state;
	uint8_t uuid[16];
	int log_fd, stop_fd, signal_fd;
	bool log_on_stderr, keeper_runs, kept_serving;
	mono_ns started;
	char *keytab, *gk_keytab; /* of afs/<cell>; of afs-rxgk/_afs.<cell> */

	struct audit *audit;
	struct rx_buf_pool *pool;
	struct realm *realm; /* NULL: external */
	struct realm_kdc *kdc;
	struct keys *keys;   /* NULL: no server role */
	struct rxkad_server rxkad;
	struct gk *gk;
	struct rxgk_server rxgk;
	struct negotiator *negotiator;
	struct adapters *adapters;
	struct vl *vl;       /* NULL each: that role is off */
	struct pt *pt;
	struct self *self;
	struct vs_store *store;
	pthread_t keeper;
	struct mtx fs_lock, vol_lock; /* hold them to use these while the overseer may run */
	struct fileserver *fs;
	struct volserver *vol;
	struct client *client;
	struct mtx parts_lock;
	struct cell_role_ports roles[CELL_ROLES]; /* GUARDED_BY(parts_lock) while the overseer runs */
	struct overseer *overseer; /* NULL: the role is off */
	uint32_t own_ips[CELL_IPS_MAX];
	size_t own_ip_count;
	struct web *web; /* NULL: no console */
	uint32_t idle_pags[CELL_PAGS_IDLE]; /* of sessions that ended; GUARDED_BY(parts_lock) */
	size_t idle_pag_n;
	struct ctl_server *ctl;

	struct mtx lock; /* one reconciliation at a time */
};

/* Make the role's part and open its ports, if the configuration has the role and it does not run; and the other
 * way.  Both wait.  For the overseer. */
afs_err cell_role_start(struct cell *c, const struct cell_watch *w, enum cell_role role);
void cell_role_stop(struct cell *c, enum cell_role role);
const struct conf_role *cell_role_conf(const struct conf *conf, enum cell_role role);

/* --- trust.c --- */
/* What users need to find the realm, where they can read it. */
afs_err cell_publish_krb5_conf(struct cell *c, struct buf *why);
/* The realms that `conf` trusts, and no others.  Told to `w`. */
afs_err cell_make_trusts(struct cell *c, const struct conf *conf, const struct cell_watch *w);

/* What parts ask of the house; ctx is a struct cell. */
void cell_port_afs_name(void *ctx, const struct rx_caller *caller, struct keys_name *out);
bool cell_port_superuser(void *ctx, const struct rx_caller *caller);
void cell_port_done(void *ctx, const struct rpc_call *call, const void *in, afs_err err, int32_t code, int64_t took_ns);
void cell_port_changed(void *ctx, afs_volid volume);
