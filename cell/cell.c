/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The house: what runs in this process and in which order it comes up.  Start reading here.
 *
 *   log and directories       where things are kept
 *   realm, keys               who people are (an external realm: only keys)
 *   databases                 VL and PT, in cell.db
 *   store                     partitions, the file server and volume server on them
 *   ports                     a UDP port with its services and workers per role
 *   reconcile                 what the configuration declares
 *   client, mount             the cache manager, as a client like any other
 *   control socket            the command line may ask
 *
 * cell_close goes the same way back.  What a failed start has built is taken down by the same code, so
 * every step of it accepts that its part was never made. */
#include "cell/cell.h"

#include "cell/adapters.h"
#include "cell/audit.h"
#include "cell/base/list.h"
#include "cell/base/log.h"
#include "cell/base/mtx.h"
#include "cell/base/rand.h"
#include "cell/base/text.h"
#include "cell/cell_parts.h"
#include "cell/console.h"
#include "cell/overseer.h"
#include "cell/preflight.h"
#include "cell/verbs.h"
#include "client/pioctl/pioctl.h"
#include "webui/web.h"
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	POOL_BYTES = 64 << 20,
	CONNS_FS = 262144, /* clients keep one for each user, for hours */
	WORKERS_FS = 64, WORKERS_VOL = 16, WORKERS_DB = 16, WORKERS_CB = 8, WORKERS_BOS = 8,
	TICK_MS = 30 * 1000, ALIVE_EVERY = 10, /* ticks */
};

/* --- telling ------------------------------------------------------------------------------- */

static void tell(const struct cell_watch *w, enum cell_event ev, const char *what, const char *text)
{
	if (w)
		w->event(w->ctx, ev, what, text);
}

[[gnu::format(printf, 4, 5)]] static afs_err fail(
	const struct cell_watch *w, const char *what, afs_err err, const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	char reason[512];
	size_t n = strlen(text);
	if (log_last_error(reason, sizeof(reason))) /* what a part wrote to the log just before */
		snprintf(text + n, sizeof(text) - n, " (%s)", reason);
	tell(w, CELL_PROBLEM, what, text);
	log_warn("cell.start_failed step=%s why=\"%s\"", what, text);
	return err;
}

/* With the reason that a part gave, or the error's own words. */
static afs_err fail_why(const struct cell_watch *w, const char *what, afs_err err, const struct buf *why)
{
	return fail(w, what, err, "%s", why->data && why->len ? why->data : afs_err_text(err));
}

/* --- log and directories ------------------------------------------------------------------- */

static afs_err open_log(struct cell *c)
{
	if (c->conf->log.file[0] == '\0')
		return AFS_OK;
	int fd = open(c->conf->log.file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return afs_err_from_errno(errno);
	int old = c->log_fd;
	c->log_fd = fd;
	log_to(fd, (enum log_level)c->conf->log.level);
	if (old >= 0)
		close(old);
	return AFS_OK;
}

static afs_err make_dir_of(struct cell *c, const char *file, struct buf *why)
{
	const char *slash = strrchr(file, '/');
	CLEANUP(str) char *dir = slash && slash != file ? mem_strndup(file, (size_t)(slash - file)) : NULL;
	return dir ? state_mkdir(c->state, dir, 0700, false, why) : AFS_OK;
}

static afs_err start_places(struct cell *c, const struct cell_watch *w)
{
	CLEANUP(buf) struct buf why = {};
	const struct conf *conf = c->conf;
	CLEANUP(str) char *keys = mem_printf("%s/keys", conf->state);
	if (!keys)
		return fail(w, "state", AFS_ENOMEM, "out of memory");
	afs_err err = preflight(conf, &why);
	if (err != AFS_OK)
		return fail_why(w, "start", err, &why);
	err = state_mkdir(c->state, keys, 0700, false, &why);
	if (err == AFS_OK)
		err = state_mkdir(c->state, conf->run, 0755, true, &why);
	if (err == AFS_OK)
		err = make_dir_of(c, conf->log.file, &why);
	if (err == AFS_OK && conf->audit.enabled)
		err = make_dir_of(c, conf->audit.file, &why);
	for (size_t i = 0; err == AFS_OK && conf->roles.fileserver.enabled && i < conf->partition_count; i++)
		err = state_mkdir(c->state, conf->partitions[i].path, 0700, true, &why);
	if (err == AFS_OK && conf->roles.client.enabled) {
		err = state_mkdir(c->state, conf->client.cache, 0700, true, &why);
		if (err == AFS_OK && *conf->client.mount)
			err = state_mkdir(c->state, conf->client.mount, 0755, false, &why);
	}
	if (err == AFS_OK)
		err = state_uuid(c->state, c->uuid, &why);
	if (err != AFS_OK)
		return fail_why(w, "state", err, &why);
	if (!c->log_on_stderr && (err = open_log(c)) != AFS_OK)
		return fail(w, "log", err, "%s cannot be written: %s", conf->log.file, afs_err_text(err));
	log_info("cell.starting cell=%s version=%s pid=%d", conf->cell, VERSION, (int)getpid());
	if (!conf->audit.enabled)
		return AFS_OK;
	struct audit_config ac = {conf->audit.file, conf->audit.max_size, (unsigned)conf->audit.keep};
	err = audit_open(&ac, &c->audit);
	return err == AFS_OK ? AFS_OK : fail(w, "audit", err, "%s cannot be written: %s", conf->audit.file, afs_err_text(err));
}

static uint32_t random_word(void *ctx) { return (void)ctx, rand_u32(); }
static void random_fill(void *ctx, void *out, size_t n) { (void)ctx, rand_bytes(out, n); }

/* The server side of a new connection, by its index. */
static struct rx_sec *accept_class(void *ctx, uint8_t index)
{
	struct cell *c = ctx;
	return index == RX_SEC_RXGK || index == RX_SEC_YFS_RXGK ? rxgk_server_new(&c->rxgk, index) : rxkad_accept(&c->rxkad, index);
}

/* --- realm and keys ------------------------------------------------------------------------ */

static afs_err start_realm(struct cell *c, const struct cell_watch *w)
{
	const struct conf *conf = c->conf;
	CLEANUP(buf) struct buf why = {};
	c->keytab = adapters_keytab(conf);
	c->gk_keytab = conf->realm.mode == CONF_REALM_EMBEDDED ? mem_printf("%s/keys/afs-rxgk.keytab", conf->state) : mem_strdup(c->keytab);
	if (!c->keytab || !c->gk_keytab)
		return fail(w, "realm", AFS_ENOMEM, "out of memory");
	if (conf->realm.mode == CONF_REALM_EMBEDDED) {
		tell(w, CELL_STEP, "realm", "");
		CLEANUP(str) char *dir = mem_printf("%s/realm", conf->state);
		if (!dir)
			return fail(w, "realm", AFS_ENOMEM, "out of memory");
		char ip[16];
		struct realm_config rc = {.dir = dir, .realm = conf->realm.name, .cell = conf->cell,
			.listen = text_ipv4_of(ip, conf->listen.v[0]), .port = conf->realm.kdc_port, .keytab = c->keytab,
			.gk_keytab = c->gk_keytab};
		bool made = false;
		afs_err err = realm_open(&rc, &c->realm, &made, &why);
		if (err == AFS_OK)
			err = cell_publish_krb5_conf(c, &why);
		if (err == AFS_OK)
			err = realm_kdc_start(c->realm, &c->kdc, &why);
		if (err != AFS_OK)
			return fail_why(w, "realm", err, &why);
		CLEANUP(str) char *text = mem_printf("%s%s, port %u", conf->realm.name, made ? " made" : "", conf->realm.kdc_port);
		tell(w, CELL_STEP_OK, "realm", text ? text : "");
	}
	if (!conf_serves(conf))
		return AFS_OK; /* a client needs no key of the cell */
	struct keys_config kc = {.cell = conf->cell, .keytab = c->keytab, .allow_dotted = conf->realm.dotted};
	afs_err err = keys_open(&kc, &c->keys, &why);
	if (err != AFS_OK)
		return fail_why(w, "keys", err, &why);
	c->rxkad = (struct rxkad_server){.read_ticket = keys_read_ticket, .ctx = c->keys, .random = random_word,
		.least = (enum rx_sec_level)conf->security_least};
	CLEANUP(str) char *gk_path = mem_printf("%s/keys/rxgk.keys", conf->state);
	if (!gk_path)
		return fail(w, "keys", AFS_ENOMEM, "out of memory");
	const struct gk_config gc = {.path = *conf->realm.rxgk_keys ? conf->realm.rxgk_keys : gk_path};
	err = gk_open(&gc, &c->gk, &why);
	if (err != AFS_OK)
		return fail_why(w, "keys", err, &why);
	c->rxgk = (struct rxgk_server){.read_token = gk_read_token, .ctx = c->gk, .random = {.fill = random_fill},
		.least = (enum rx_sec_level)conf->security_least};
	const struct negotiator_config nc = {.cell = conf->cell, .keytab = c->gk_keytab, .gk = c->gk, .done = cell_port_done, .ctx = c};
	if (negotiator_new(&nc, &c->negotiator) != AFS_OK)
		return fail(w, "keys", AFS_ENOMEM, "out of memory");
	return AFS_OK;
}

/* --- databases ----------------------------------------------------------------------------- */

static afs_err start_databases(struct cell *c, const struct cell_watch *w)
{
	const struct conf *conf = c->conf;
	c->adapters = adapters_new(conf->cell, conf->realm.name, &conf->realm.local);
	if (!c->adapters || adapters_set_administrators(c->adapters, &conf->administrators) != AFS_OK)
		return fail(w, "databases", AFS_ENOMEM, "out of memory");
	if (!conf->roles.vlserver.enabled && !conf->roles.ptserver.enabled)
		return AFS_OK;
	tell(w, CELL_STEP, "databases", "");
	CLEANUP(str) char *path = mem_printf("%s/cell.db", conf->state);
	if (!path)
		return fail(w, "databases", AFS_ENOMEM, "out of memory");
	uint32_t ips[ADAPTERS_ADDRS_MAX] = {};
	adapters_own_ips(conf, ips, ADAPTERS_ADDRS_MAX);
	struct dbserver_config dc = {
		.path = path,
		.sync = conf->durability == CONF_DURABLE_POWER ? DB_SYNC_POWER : DB_SYNC_PROCESS,
		.realms = adapters_realms(c->adapters),
		.ip = ips[0],
		.ports = {.ctx = c, .afs_name = cell_port_afs_name, .superuser = cell_port_superuser, .done = cell_port_done},
	};
	afs_err err = AFS_OK;
	if (conf->roles.vlserver.enabled)
		err = vl_open(&dc, &c->vl);
	if (err == AFS_OK && conf->roles.ptserver.enabled)
		err = pt_open(&dc, &c->pt);
	if (err != AFS_OK)
		return fail(w, "databases", err, "%s: %s", path, afs_err_text(err));
	tell(w, CELL_STEP_OK, "databases", "");
	return AFS_OK;
}

void cell_port_afs_name(void *ctx, const struct rx_caller *caller, struct keys_name *out)
{
	adapters_afs_name(((struct cell *)ctx)->adapters, caller, out);
}
bool cell_port_superuser(void *ctx, const struct rx_caller *caller)
{
	return adapters_superuser(((struct cell *)ctx)->adapters, caller);
}
void cell_port_done(void *ctx, const struct rpc_call *call, const void *in, afs_err err, int32_t code, int64_t took_ns)
{
	audit_call(((struct cell *)ctx)->audit, call, in, err, code, took_ns);
}
void cell_port_changed(void *ctx, afs_volid volume)
{
	struct cell *c = ctx;
	mtx_lock(&c->fs_lock);
	if (c->fs)
		fileserver_volume_changed(c->fs, volume);
	mtx_unlock(&c->fs_lock);
}

/* --- store --------------------------------------------------------------------------------- */

static void *keeper_thread(void *arg)
{
	struct cell *c = arg;
	pthread_setname_np(pthread_self(), "store-keeper");
	vs_store_keep(c->store);
	return NULL;
}

static afs_err start_store(struct cell *c, const struct cell_watch *w)
{
	const struct conf *conf = c->conf;
	if (!conf->roles.fileserver.enabled)
		return AFS_OK;
	tell(w, CELL_STEP, "store", "");
	struct vs_config vc = {.durability = conf->durability == CONF_DURABLE_POWER ? VS_POWER : VS_PROCESS};
	afs_err err = vs_store_open(&vc, &c->store);
	if (err != AFS_OK)
		return fail(w, "store", err, "%s", afs_err_text(err));
	for (size_t i = 0; i < conf->partition_count; i++) {
		struct vs_partition *p;
		err = vs_partition_attach(c->store, conf->partitions[i].name, conf->partitions[i].path, &p);
		if (err != AFS_OK)
			return fail(w, "store", err, "partition %s in %s: %s", conf->partitions[i].name, conf->partitions[i].path,
				err == AFS_EBUSY ? "another process has it" : afs_err_text(err));
	}
	if (pthread_create(&c->keeper, NULL, keeper_thread, c) != 0)
		return fail(w, "store", AFS_ENOMEM, "no more threads");
	c->keeper_runs = true;
	tell(w, CELL_STEP_OK, "store", "");
	return AFS_OK;
}

/* --- ports --------------------------------------------------------------------------------- */

const struct conf_role *cell_role_conf(const struct conf *conf, enum cell_role role)
{
	const struct conf_role *const all[] = {[CELL_PT] = &conf->roles.ptserver, [CELL_VL] = &conf->roles.vlserver,
		[CELL_FS] = &conf->roles.fileserver, [CELL_VOL] = &conf->roles.volserver, [CELL_CLIENT] = &conf->roles.client,
		[CELL_BOS] = &conf->roles.bosserver};
	return all[role];
}

static const char *const role_names[] = {[CELL_PT] = "ptserver", [CELL_VL] = "vlserver", [CELL_FS] = "fileserver",
	[CELL_VOL] = "volserver", [CELL_CLIENT] = "client", [CELL_BOS] = "bosserver"};

/* `port` for the role on each address in `ips`. */
static afs_err open_ports(struct cell *c, const struct cell_watch *w, struct cell_role_ports *r, enum cell_role role, uint16_t port,
	struct rpc_service *services, size_t n, unsigned workers, const uint32_t *ips, size_t ip_count)
{
	const enum rx_sec_level least = (enum rx_sec_level)conf_least(c->conf, cell_role_conf(c->conf, role));
	for (size_t i = 0; i < n; i++)
		services[i].least = MAX(services[i].least, least);
	if (!r->workers)
		r->workers = rpc_workers_new(role_names[role], workers);
	if (!r->workers)
		return fail(w, role_names[role], AFS_ENOMEM, "out of memory");
	for (size_t i = 0; i < ip_count && r->port_count < CELL_IPS_MAX; i++) {
		struct rpc_port_config pc = {
			.name = role_names[role],
			.ip = ips[i],
			.port = port,
			.services = services,
			.service_count = n,
			.acceptor = c->keys ? (struct rx_sec_acceptor){accept_class, c} : (struct rx_sec_acceptor){},
			.workers = r->workers,
			.pool = c->pool,
			.conns_max = role == CELL_FS ? CONNS_FS : 0,
			.abort_threshold = role == CELL_FS ? (uint32_t)c->conf->fileserver.abort_threshold : 0,
		};
		afs_err err = rpc_port_open(&pc, &r->ports[r->port_count]);
		if (err != AFS_OK)
			return fail(w, role_names[role], err, "UDP port %u on %s: %s", port, IPV4(ips[i]), afs_err_text(err));
		r->port_count++;
	}
	return AFS_OK;
}

static void close_ports(struct cell_role_ports *r)
{
	for (size_t i = 0; i < r->port_count; i++)
		rpc_port_close(r->ports[i]);
	if (r->workers)
		rpc_workers_free(r->workers);
	*r = (struct cell_role_ports){};
}

static void close_role(struct cell *c, enum cell_role role)
{
	mtx_lock(&c->parts_lock);
	struct cell_role_ports r = TAKE(c->roles[role]);
	mtx_unlock(&c->parts_lock);
	close_ports(&r);
}

static afs_err make_fileserver(struct cell *c, const struct cell_watch *w, struct fileserver **out)
{
	struct fileserver_config fc = {
		.store = c->store,
		.ports.audit = {.ctx = c, .done = cell_port_done},
		.least = (enum rx_sec_level)c->conf->security_least,
		.allow_anonymous = true,
		.callbacks_max = (uint32_t)c->conf->fileserver.callbacks,
		/* the default is the classic table itself */
		.callback_life_s = c->conf->fileserver.callback_life == 14400 ? 0 : (uint32_t)c->conf->fileserver.callback_life,
		.break_wait_ns = c->conf->fileserver.break_wait * (NS_PER_SEC / 1000),
		.identify_max = WORKERS_FS / 2,
	};
	adapters_people_port(c->adapters, &fc.ports.people);
	fc.uuid = afs_uuid_from_bytes(c->uuid);
	afs_err err = fileserver_new(&fc, out);
	return err == AFS_OK ? err : fail(w, "fileserver", err, "%s", afs_err_text(err));
}

/* For Forward: the cell itself calls another volume server, or its own. */
static afs_err port_connect(void *ctx, struct rx_addr to, struct rpc_conn **out)
{
	struct cell *c = ctx;
	CLEANUP(keys_token) struct keys_token token = {};
	struct rpc_conn_config cc = {.peer = to, .iface = &vol_iface, .dead_ns = SEC(60)};
	mtx_lock(&c->parts_lock);
	struct rpc_port *port = c->roles[CELL_VOL].port_count ? rpc_port_ref(c->roles[CELL_VOL].ports[0]) : NULL;
	mtx_unlock(&c->parts_lock);
	if (!port)
		return AFS_ERESTARTING;
	afs_err err = c->keys ? keys_localauth(c->keys, &token) : AFS_ENOENT;
	if (!err && !(cc.sec = keys_token_client(&token.both, RX_LEVEL_CRYPT)))
		err = AFS_ENOMEM;
	if (err == AFS_OK || err == AFS_ENOENT)
		err = rpc_conn_new(port, &cc, out);
	rpc_port_unref(port);
	return err;
}

static afs_err make_volserver(struct cell *c, const struct cell_watch *w, struct volserver **out)
{
	struct volserver_config sc = {
		.store = c->store,
		.least = (enum rx_sec_level)c->conf->security_least,
		.allow_anonymous = true,
		.superuser = cell_port_superuser,
		.changed = cell_port_changed,
		.connect = port_connect,
		.done = cell_port_done,
		.ctx = c,
	};
	afs_err err = volserver_new(&sc, out);
	return err == AFS_OK ? err : fail(w, "volserver", err, "%s", afs_err_text(err));
}

/* The part of a role and its services.  Databases live as long as the cell; the file server and the volume server
 * are made afresh, so that a start is what a start is to their clients. */
static afs_err make_part(struct cell *c, const struct cell_watch *w, enum cell_role role, struct rpc_service services[8], size_t *n)
{
	struct fileserver *fs = NULL;
	struct volserver *vol = NULL;
	*n = 0;
	switch (role) {
	case CELL_PT: *n = c->pt ? pt_services(c->pt, services) : 0; break;
	case CELL_VL: *n = c->vl ? vl_services(c->vl, services) : 0; break;
	case CELL_BOS: *n = c->overseer ? overseer_services(c->overseer, services) : 0; break;
	case CELL_FS:
		if (!c->store)
			break;
		TRY(make_fileserver(c, w, &fs));
		*n = fileserver_services(fs, services, 8);
		mtx_lock(&c->fs_lock);
		c->fs = fs;
		mtx_unlock(&c->fs_lock);
		break;
	case CELL_VOL:
		if (!c->store)
			break;
		TRY(make_volserver(c, w, &vol));
		*n = volserver_services(vol, services, 8);
		mtx_lock(&c->vol_lock);
		c->vol = vol;
		mtx_unlock(&c->vol_lock);
		break;
	default: break;
	}
	if (*n && c->negotiator && (role == CELL_PT || role == CELL_VL))
		*n += negotiator_services(c->negotiator, &services[*n]);
	return AFS_OK;
}

static afs_err start_role(struct cell *c, const struct cell_watch *w, enum cell_role role)
{
	static const unsigned workers[] = {[CELL_PT] = WORKERS_DB, [CELL_VL] = WORKERS_DB, [CELL_FS] = WORKERS_FS,
		[CELL_VOL] = WORKERS_VOL, [CELL_BOS] = WORKERS_BOS};
	const struct conf_role *want = cell_role_conf(c->conf, role);
	struct rpc_service services[8];
	struct cell_role_ports ports = {};
	size_t n;
	char port[24];
	TRY(make_part(c, w, role, services, &n));
	if (!n)
		return AFS_OK;
	tell(w, CELL_STEP, role_names[role], "");
	afs_err err = open_ports(c, w, &ports, role, want->port, services, n, workers[role], c->conf->listen.v,
		MIN(c->conf->listen.n, (size_t)CELL_IPS_MAX));
	if (err == AFS_OK && role == CELL_FS) {
		err = fileserver_start(c->fs, ports.ports[0]);
		if (err != AFS_OK)
			(void)fail(w, "fileserver", err, "%s", afs_err_text(err)); /* told; err is given below */
	}
	if (err != AFS_OK) {
		close_ports(&ports);
		return err;
	}
	mtx_lock(&c->parts_lock);
	c->roles[role] = ports;
	mtx_unlock(&c->parts_lock);
	snprintf(port, sizeof(port), "port %u", want->port);
	tell(w, CELL_STEP_OK, role_names[role], port);
	return AFS_OK;
}

static void stop_role(struct cell *c, enum cell_role role)
{
	mtx_lock(&c->fs_lock);
	struct fileserver *fs = role == CELL_FS ? TAKE(c->fs) : NULL;
	mtx_unlock(&c->fs_lock);
	mtx_lock(&c->vol_lock);
	struct volserver *vol = role == CELL_VOL ? TAKE(c->vol) : NULL;
	mtx_unlock(&c->vol_lock);
	if (fs)
		fileserver_stop(fs); /* before its ports close: it calls clients from them */
	close_role(c, role);
	if (vol)
		volserver_free(vol);
	fileserver_free(fs);
}

afs_err cell_role_start(struct cell *c, const struct cell_watch *w, enum cell_role role)
{
	mtx_lock(&c->parts_lock);
	bool runs = c->roles[role].port_count;
	mtx_unlock(&c->parts_lock);
	if (runs || !cell_role_conf(c->conf, role)->enabled)
		return AFS_OK;
	afs_err err = start_role(c, w, role);
	if (err != AFS_OK)
		stop_role(c, role);
	return err;
}

void cell_role_stop(struct cell *c, enum cell_role role) { stop_role(c, role); }

static afs_err start_ports(struct cell *c, const struct cell_watch *w)
{
	static const enum cell_role order[] = {CELL_PT, CELL_VL, CELL_FS, CELL_VOL};
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (cell_role_conf(c->conf, order[i])->enabled)
			TRY(start_role(c, w, order[i]));
	return AFS_OK;
}

/* --- the cell as its own client, and what is declared --------------------------------------- */

static afs_err start_self(struct cell *c, const struct cell_watch *w)
{
	const struct conf *conf = c->conf;
	if (!c->keys)
		return AFS_OK;
	struct self_config sc = {
		.pt_here = c->pt,
		.vl_here = c->vl,
		.keys = c->keys,
		.pool = c->pool,
		.level = MAX((enum rx_sec_level)conf->security_least, RX_LEVEL_CRYPT),
	};
	sc.pt_count = adapters_database_servers(conf, conf->roles.ptserver.port, sc.pt, SELF_SERVERS_MAX);
	sc.vl_count = adapters_database_servers(conf, conf->roles.vlserver.port, sc.vl, SELF_SERVERS_MAX);
	afs_err err = self_open(&sc, &c->self);
	if (err != AFS_OK)
		return fail(w, "databases", err, "cannot be reached: %s", afs_err_text(err));
	adapters_set_people(c->adapters, c->pt, c->self);
	return AFS_OK;
}

static afs_err register_server(struct cell *c, const struct cell_watch *w)
{
	c->own_ip_count = adapters_own_ips(c->conf, c->own_ips, CELL_IPS_MAX);
	if (!c->store)
		return AFS_OK;
	struct afsUUID uuid = afs_uuid_from_bytes(c->uuid);
	afs_err err = self_register(c->self, &uuid, c->own_ips, c->own_ip_count);
	if (err != AFS_OK)
		return fail(w, "fileserver", err, "cannot be registered with the location database: %s", afs_err_text(err));
	return AFS_OK;
}

static afs_err run_reconcile(struct cell *c, const struct conf *conf, const struct cell_watch *w, const json_t *passwords)
{
	if (c->realm)
		TRY(cell_make_trusts(c, conf, w));
	if (!c->self || (!c->store && conf->user_count == 0 && conf->group_count == 0 && conf->administrators.n == 0))
		return AFS_OK;
	struct reconcile r = {
		.conf = conf,
		.realm = c->realm,
		.self = c->self,
		.store = c->store,
		.own_ips = c->own_ips,
		.own_ip_count = c->own_ip_count,
		.changed = cell_port_changed,
		.changed_ctx = c,
		.audit = c->audit,
		.watch = w,
		.passwords = passwords,
		.all_or_nothing = state_is_fresh(c->state) && !c->kept_serving,
	};
	return reconcile_run(&r);
}

/* --- client -------------------------------------------------------------------------------- */

static mono_ns port_now(void *ctx) { return (void)ctx, clk_mono(); }
static wall_ns port_wall(void *ctx) { return (void)ctx, clk_wall(); }

/* What client.security says, `automatic` when it leaves the choice, and never less than servers take. */
static enum rx_sec_level client_level(const struct conf *conf, enum rx_sec_level automatic)
{
	enum rx_sec_level level = automatic;
	if (conf->client.security != CONF_CLIENT_AUTO)
		level = (enum rx_sec_level)(conf->client.security - CONF_CLIENT_CLEAR);
	return MAX(level, (enum rx_sec_level)conf_least(conf, &conf->roles.fileserver));
}

/* The file server of this very process, for the client's calls. */
static struct rpc_port *port_direct(void *ctx, struct rx_addr server, struct rx_addr *from)
{
	struct cell *c = ctx;
	struct rpc_port *port = NULL;
	bool own = false;
	for (size_t i = 0; i < c->own_ip_count && !own; i++)
		own = c->own_ips[i] == server.ip;
	if (!own || !c->conf->client.direct || server.port != c->conf->roles.fileserver.port)
		return NULL;
	mtx_lock(&c->parts_lock);
	if (c->roles[CELL_FS].port_count)
		port = rpc_port_ref(c->roles[CELL_FS].ports[0]);
	mtx_unlock(&c->parts_lock);
	*from = (struct rx_addr){server.ip, c->conf->roles.client.port};
	return port;
}

static afs_err further_cells(struct cell *c, const struct cell_watch *w)
{
	enum { DB_MAX = 4 << 20 };
	const char *path = c->conf->client.cell_serv_db;
	if (!path || !*path)
		return AFS_OK;
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(heap) char *text = mem_alloc(DB_MAX, 1);
	size_t n = 0;
	ssize_t got = fd < 0 || !text ? -1 : 0;
	while (got >= 0 && n < DB_MAX && (got = read(fd, text + n, DB_MAX - n)) > 0)
		n += (size_t)got;
	if (got < 0)
		return fail(w, "client", AFS_EIO, "%s cannot be read (client.cell_serv_db): %s", path, strerror(errno));
	unsigned bad;
	afs_err err = client_cells_load(c->client, text, n, &bad);
	if (bad)
		log_warn("cell.cells.lines_skipped file=%s lines=%u", path, bad);
	return err == AFS_OK ? err : fail(w, "client", err, "%s: %s", path, afs_err_text(err));
}

static afs_err start_client(struct cell *c, const struct cell_watch *w)
{
	const struct conf *conf = c->conf;
	if (!conf->roles.client.enabled)
		return AFS_OK;
	tell(w, CELL_STEP, "client", "");
	struct rx_addr vl[ADAPTERS_ADDRS_MAX];
	struct client_cell cell = {.name = conf->cell, .vl = vl};
	cell.vl_count = adapters_database_servers(conf, conf->roles.vlserver.port, vl, ADAPTERS_ADDRS_MAX);
	struct client_config cc = {
		.cells = &cell,
		.cell_count = 1,
		.cache_dir = conf->client.memory_cache ? NULL : conf->client.cache,
		.cache_bytes = (uint64_t)conf->client.cache_size,
		.dns = conf->client.dns,
		.level = client_level(conf, RX_LEVEL_CRYPT),
		.level_here = client_level(conf, RX_LEVEL_CLEAR),
	};
	struct client_ports ports = {.ctx = c, .now = port_now, .wall = port_wall, .direct = port_direct};
	afs_err err = client_new(&cc, &ports, &c->client);
	if (err != AFS_OK)
		return fail(w, "client", err, "cache in %s: %s", conf->client.cache,
			err == AFS_EBUSY ? "another process uses it" : afs_err_text(err));
	err = further_cells(c, w);
	if (err != AFS_OK)
		return err;
	struct rpc_service callbacks, tools;
	client_service(c->client, &callbacks);
	pioctl_service(c->client, &tools);
	/* Servers elsewhere cannot be reached from a port that is bound to loopback. */
	bool any = conf->database_servers.n || conf->listen.v[0] == 0;
	uint32_t ip = any ? 0 : c->own_ips[0], loopback = INADDR_LOOPBACK;
	TRY(open_ports(c, w, &c->roles[CELL_CLIENT], CELL_CLIENT, conf->roles.client.port, &callbacks, 1, WORKERS_CB, &ip, 1));
	TRY(open_ports(c, w, &c->roles[CELL_CLIENT], CELL_CLIENT, (uint16_t)conf->client.tools_port, &tools, 1, WORKERS_CB, &loopback, 1));
	err = client_start(c->client, c->roles[CELL_CLIENT].ports[0]);
	if (err != AFS_OK)
		return fail(w, "client", err, "%s", afs_err_text(err));
	char port[24];
	snprintf(port, sizeof(port), "port %u", conf->roles.client.port);
	tell(w, CELL_STEP_OK, "client", port);
	if (!*conf->client.mount)
		return AFS_OK;
	tell(w, CELL_STEP, "mount", "");
	err = client_mount(c->client, conf->client.mount);
	if (err != AFS_OK)
		return fail(w, "mount", err, "%s cannot be mounted: %s%s", conf->client.mount, afs_err_text(err),
			err == AFS_ENODEV ? "; is FUSE there (/dev/fuse, fusermount3)?" : "");
	tell(w, CELL_STEP_OK, "mount", conf->client.mount);
	return AFS_OK;
}

/* --- the whole ----------------------------------------------------------------------------- */

static afs_err start_control(struct cell *c, const struct cell_watch *w)
{
	CLEANUP(str) char *path = mem_printf("%s/control", c->conf->run);
	c->ctl = path ? ctl_server_new(path) : NULL;
	if (!c->ctl)
		return fail(w, "control", AFS_ENOMEM, "out of memory");
	afs_err err = verbs_add(c->ctl, c);
	if (err == AFS_OK)
		err = ctl_server_start(c->ctl);
	if (err != AFS_OK)
		return fail(w, "control", err, "the socket %s cannot be made: %s", path, afs_err_text(err));
	return AFS_OK;
}

/* Last of the roles: it begins with what runs. */
static afs_err start_overseer(struct cell *c, const struct cell_watch *w)
{
	if (!c->conf->roles.bosserver.enabled || !conf_serves(c->conf))
		return AFS_OK;
	afs_err err = overseer_new(c, &c->overseer);
	if (err == AFS_OK)
		err = overseer_start(c->overseer);
	if (err != AFS_OK)
		return fail(w, "bosserver", err, "%s", afs_err_text(err));
	return start_role(c, w, CELL_BOS);
}

static afs_err start_all(struct cell *c, const struct cell_watch *w)
{
	TRY(start_places(c, w));
	c->pool = rx_buf_pool_new(POOL_BYTES);
	if (!c->pool)
		return fail(w, "start", AFS_ENOMEM, "out of memory");
	TRY(start_realm(c, w));
	TRY(start_databases(c, w));
	TRY(start_self(c, w));
	TRY(start_store(c, w));
	TRY(start_ports(c, w));
	TRY(register_server(c, w));
	TRY(run_reconcile(c, c->conf, w, NULL));
	TRY(start_client(c, w));
	TRY(start_overseer(c, w));
	TRY(console_start(c, w));
	CLEANUP(buf) struct buf why = {};
	afs_err err = state_keep(c->state, &why); /* all that a configuration can spoil went well */
	if (err != AFS_OK)
		return fail_why(w, "state", err, &why);
	preflight_alive(c->conf);
	return start_control(c, w);
}

afs_err cell_open(struct conf *conf, struct state *state, bool log_on_stderr, const struct cell_watch *watch, struct cell **out)
{
	struct cell *c = mem_new(struct cell);
	if (!c) {
		state_close(state);
		conf_free(conf);
		return AFS_ENOMEM;
	}
	char old[8];
	(void)log_last_error(old, sizeof(old)); /* what went before is no reason of ours */
	mtx_init(&c->lock, RANK_CELL);
	mtx_init(&c->parts_lock, RANK_CELL_PARTS);
	mtx_init(&c->fs_lock, RANK_CELL_FS);
	mtx_init(&c->vol_lock, RANK_CELL_VOL);
	c->conf = conf;
	c->state = state;
	c->log_fd = -1;
	c->log_on_stderr = log_on_stderr;
	c->started = clk_mono();
	c->stop_fd = eventfd(0, EFD_CLOEXEC);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	/* Until the log is open, what must be said is said to the one who watches. */
	log_to(log_on_stderr ? STDERR_FILENO : -1, (enum log_level)conf->log.level);
	afs_err err = c->stop_fd < 0 || c->signal_fd < 0 ? fail(watch, "start", AFS_EIO, "no more descriptors") : start_all(c, watch);
	if (err != AFS_OK) {
		cell_close(c, NULL);
		return err;
	}
	log_info("cell.serving cell=%s ms=%lld", conf->cell, (long long)((clk_mono() - c->started) / MSEC(1)));
	*out = c;
	return AFS_OK;
}

void cell_close(struct cell *c, const struct cell_watch *w)
{
	if (!c)
		return;
	tell(w, CELL_STEP, "stopping", "");
	if (c->kept_serving)
		preflight_alive(c->conf);
	console_stop(c); /* its commands ask through the control socket */
	ctl_server_free(c->ctl);
	/* The overseer's calls end, then its thread: from here on nobody else starts or stops a role. */
	if (c->overseer)
		overseer_stop(c->overseer);
	close_role(c, CELL_BOS);
	overseer_free(c->overseer);
	if (c->client) {
		client_unmount(c->client);
		client_stop(c->client);
	}
	close_role(c, CELL_CLIENT);
	client_free(c->client);
	stop_role(c, CELL_VOL);
	stop_role(c, CELL_FS);
	close_role(c, CELL_VL);
	close_role(c, CELL_PT);
	if (c->keeper_runs) {
		vs_store_stop(c->store);
		pthread_join(c->keeper, NULL);
	}
	if (c->store)
		vs_store_close(c->store);
	self_close(c->self);
	vl_close(c->vl);
	pt_close(c->pt);
	adapters_free(c->adapters);
	negotiator_free(c->negotiator);
	gk_close(c->gk);
	keys_close(c->keys);
	if (c->kdc)
		realm_kdc_stop(c->kdc);
	realm_close(c->realm);
	if (c->pool)
		rx_buf_pool_free(c->pool);
	audit_close(c->audit);
	if (c->kept_serving)
		log_info("cell.stopped cell=%s", c->conf->cell);
	log_to(STDERR_FILENO, LOG_INFO);
	if (c->log_fd >= 0)
		close(c->log_fd);
	if (c->stop_fd >= 0)
		close(c->stop_fd);
	if (c->signal_fd >= 0)
		close(c->signal_fd);
	state_close(c->state); /* last: it holds the lock, and takes away what a failed first start made */
	mem_free(c->keytab);
	mem_free(c->gk_keytab);
	conf_free(c->conf);
	mtx_fini(&c->lock);
	mtx_fini(&c->parts_lock);
	mtx_fini(&c->fs_lock);
	mtx_fini(&c->vol_lock);
	mem_free(c);
	tell(w, CELL_STEP_OK, "stopping", "");
}

struct differences {
	const struct cell_watch *watch;
};
static void on_difference(void *ctx, const char *path)
{
	const struct differences *d = ctx;
	tell(d->watch, CELL_PROBLEM, path, "changed, which takes a restart: afscell down, then afscell up");
}

afs_err cell_reconcile(struct cell *c, struct conf *conf, const json_t *passwords, const struct cell_watch *watch)
{
	struct differences d = {watch};
	mtx_lock(&c->lock);
	size_t n = conf_fixed_differences(c->conf, conf, on_difference, &d);
	/* Administrators are asked for on every call; the rest of the desired state is done once. */
	afs_err err = adapters_set_administrators(c->adapters, &conf->administrators);
	if (err == AFS_OK)
		err = run_reconcile(c, conf, watch, passwords);
	mtx_unlock(&c->lock);
	conf_free(conf);
	return err == AFS_OK && n ? AFS_EINVAL : err;
}

void cell_stop(struct cell *c)
{
	uint64_t one = 1;
	while (write(c->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void cell_run(struct cell *c)
{
	unsigned ticks = 0;
	c->kept_serving = true;
	mono_ns next = clk_mono() + MSEC(TICK_MS);
	for (;;) {
		struct pollfd p[2] = {{.fd = c->signal_fd, .events = POLLIN}, {.fd = c->stop_fd, .events = POLLIN}};
		int64_t wait_ms = (next - clk_mono()) / MSEC(1);
		int n = poll(p, 2, wait_ms < 0 ? 0 : (int)wait_ms + 1);
		if (n < 0 && errno != EINTR)
			return;
		if (p[1].revents)
			return;
		if (n > 0 && p[0].revents) {
			struct signalfd_siginfo si;
			if (read(c->signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si) && si.ssi_signo != SIGHUP)
				return;
			if (!c->log_on_stderr && open_log(c) != AFS_OK)
				log_warn("cell.log.reopen_failed file=%s", c->conf->log.file);
		}
		if (clk_mono() < next)
			continue;
		next += MSEC(TICK_MS);
		mtx_lock(&c->vol_lock);
		if (c->vol)
			volserver_tick(c->vol, clk_mono());
		mtx_unlock(&c->vol_lock);
		if (++ticks % ALIVE_EVERY == 0)
			preflight_alive(c->conf);
	}
}

/* --- status -------------------------------------------------------------------------------- */

static void add_role(json_t *list, const char *name, const char *state, unsigned port)
{
	json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", name, "state", state, "port",
						port ? json_integer((json_int_t)port) : json_null()));
}

json_t *cell_status(struct cell *c)
{
	const struct conf *conf = c->conf;
	json_t *roles = json_array();
	for (int i = 0; i < CELL_ROLES; i++) {
		const struct conf_role *want = cell_role_conf(conf, (enum cell_role)i);
		mtx_lock(&c->parts_lock);
		bool runs = c->roles[i].port_count, enabled = want->enabled && (i != CELL_BOS || conf_serves(conf));
		mtx_unlock(&c->parts_lock);
		add_role(roles, role_names[i], runs ? "running" : enabled ? "stopped" : "off", enabled ? want->port : 0);
	}
	if (c->kdc) {
		struct realm_kdc_status ks;
		realm_kdc_status(c->kdc, &ks);
		add_role(roles, "kdc", ks.state == REALM_KDC_RUNNING ? "running" : ks.state == REALM_KDC_WAITING ? "restarting" : "stopped",
			conf->realm.kdc_port);
	}
	const char *mount = c->client ? client_mounted_at(c->client) : NULL;
	json_t *addresses = json_array();
	for (size_t i = 0; i < conf->listen.n; i++)
		json_array_append_new(addresses, json_string(IPV4(conf->listen.v[i])));
	json_t *status = json_pack("{s:s, s:s, s:s, s:o, s:s?, s:s, s:i, s:I, s:s, s:o, s:o}", "cell", conf->cell, "realm", conf->realm.name,
		"state", "serving", "mount", mount ? json_string(mount) : json_null(), "console", c->web ? web_url(c->web) : NULL, "version", VERSION, "pid",
		(int)getpid(), "uptime_s", (json_int_t)((clk_mono() - c->started) / NS_PER_SEC), "config", conf->file, "listen", addresses,
		"roles", roles);
	if (c->client && status) {
		struct client_stats s;
		client_stats(c->client, &s);
		json_object_set_new(status, "client", json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			"cache_bytes", (json_int_t)s.cache_bytes, "cache_max", (json_int_t)s.cache_max, "dirty_bytes", (json_int_t)s.dirty_bytes,
			"vnodes", (json_int_t)s.vnodes, "calls", (json_int_t)s.calls, "retries", (json_int_t)s.retries, "breaks", (json_int_t)s.breaks,
			"fetched_bytes", (json_int_t)s.fetched_bytes, "stored_bytes", (json_int_t)s.stored_bytes, "recovered", (json_int_t)s.recovered,
			"conflicts", (json_int_t)s.conflicts, "waiting", (json_int_t)s.waiting));
	}
	return status;
}
