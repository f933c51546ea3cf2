/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/overseer.h"

#include "cell/base/log.h"
#include "cell/base/mem.h"
#include "cell/base/text.h"
#include "cell/bos/bos.h"
#include "cell/cell_parts.h"
#include "cell/proto/vol.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ROLES_MAX = 2 };

/* An instance: its roles in the order in which they start. */
struct kind {
	const char *name, *type;
	enum cell_role roles[ROLES_MAX];
	size_t role_count;
};
static const struct kind kinds[] = {
	{"ptserver", "simple", {CELL_PT}, 1},
	{"vlserver", "simple", {CELL_VL}, 1},
	{"fs", "fs", {CELL_FS, CELL_VOL}, 2},
};

struct overseer {
	struct cell *cell;
	struct bos_server *bos;
	struct bos_instance instances[ARRAY_SIZE(kinds)];
	const struct kind *kind[ARRAY_SIZE(kinds)]; /* of each instance */
	size_t count;
	char parms[ARRAY_SIZE(kinds)][ROLES_MAX][64];
	char *state, *repair_log;
};

/* --- what the overseer asks ------------------------------------------------------------------------------- */

static afs_err port_start(void *ctx, size_t i)
{
	struct overseer *o = ctx;
	const struct kind *k = o->kind[i];
	for (size_t r = 0; r < k->role_count; r++) {
		afs_err err = cell_role_start(o->cell, NULL, k->roles[r]);
		if (err != AFS_OK) {
			while (r-- > 0)
				cell_role_stop(o->cell, k->roles[r]);
			return err;
		}
	}
	return AFS_OK;
}

static void port_stop(void *ctx, size_t i)
{
	struct overseer *o = ctx;
	const struct kind *k = o->kind[i];
	for (size_t r = k->role_count; r-- > 0;)
		cell_role_stop(o->cell, k->roles[r]);
}

static bool port_host(void *ctx, size_t i, char out[BOS_STR_MAX + 1])
{
	struct overseer *o = ctx;
	struct rx_addr dbs[ADAPTERS_ADDRS_MAX];
	size_t n = adapters_database_servers(o->cell->conf, 0, dbs, ADAPTERS_ADDRS_MAX);
	if (i >= n)
		return false;
	snprintf(out, BOS_STR_MAX + 1, "%s", IPV4(dbs[i].ip));
	return true;
}

static bool port_user(void *ctx, size_t i, char out[BOS_STR_MAX + 1])
{
	return adapters_administrator(((struct overseer *)ctx)->cell->adapters, i, out, BOS_STR_MAX + 1);
}

static void port_users_changed(void *ctx, const char *const *names, size_t n)
{
	struct overseer *o = ctx;
	struct conf_names list = {(char **)(uintptr_t)names, n};
	if (adapters_set_superusers(o->cell->adapters, &list) != AFS_OK)
		log_warn("bos.users.not_taken err=NOMEM: as before until the next change");
}

static bool port_key(void *ctx, size_t i, struct bos_key *out)
{
	struct overseer *o = ctx;
	enum { KEYS_SHOWN = 64 };
	struct keys_entry list[KEYS_SHOWN];
	size_t n = keys_list(o->cell->keys, list, KEYS_SHOWN);
	struct stat st;
	if (i >= MIN(n, (size_t)KEYS_SHOWN))
		return false;
	*out = (struct bos_key){.kvno = list[i].kvno, .checksum = list[i].checksum,
		.changed = stat(o->cell->keytab, &st) == 0 ? st.st_mtime : 0};
	return true;
}

/* One process writes one log: the servers' usual names all mean it. */
static bool port_log(void *ctx, const char *name, char out[PATH_MAX])
{
	static const char *const names[] = {"afscell.log", "BosLog", "FileLog", "VolserLog", "VLLog", "PtLog"};
	const struct conf *conf = ((struct overseer *)ctx)->cell->conf;
	if (strcmp(name, "audit.jsonl") == 0 && conf->audit.enabled)
		return snprintf(out, PATH_MAX, "%s", conf->audit.file) < PATH_MAX;
	for (size_t i = 0; i < ARRAY_SIZE(names) && conf->log.file[0]; i++)
		if (strcmp(name, names[i]) == 0)
			return snprintf(out, PATH_MAX, "%s", conf->log.file) < PATH_MAX;
	return false;
}

/* All are this program. */
static int64_t port_program(void *ctx, const char *name)
{
	static const char *const names[] = {"afscell", "bosserver", "fileserver", "volserver", "salvager", "vlserver", "ptserver"};
	struct stat st;
	(void)ctx;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(name, names[i]) == 0)
			return stat("/proc/self/exe", &st) == 0 ? st.st_mtime : 0;
	return 0;
}

static bool port_superuser(void *ctx, const struct rx_caller *caller)
{
	return cell_port_superuser(((struct overseer *)ctx)->cell, caller);
}

static void port_done(void *ctx, const struct rpc_call *call, const void *in, afs_err err, int32_t code, int64_t took_ns)
{
	cell_port_done(((struct overseer *)ctx)->cell, call, in, err, code, took_ns);
}

/* --- repair ------------------------------------------------------------------------------------------------ */

struct proving {
	void (*say)(void *ctx, const char *line);
	void *ctx;
	uint32_t volume;
	unsigned findings;
};

static void on_finding(void *ctx, const struct vs_finding *f)
{
	struct proving *p = ctx;
	char line[320];
	snprintf(line, sizeof(line), "volume %u vnode %u.%u: %s", p->volume, f->fid.vnode, f->fid.unique, f->text[0] ? f->text : "damaged");
	p->findings++;
	p->say(p->ctx, line);
}

static void prove(struct cell *c, struct vs_partition *part, struct proving *p)
{
	CLEANUP(vs_volume) struct vs_volume *v = NULL;
	char line[128];
	size_t found = 0;
	p->findings = 0;
	afs_err err = vs_volume_find(c->store, part, p->volume, &v);
	if (err == AFS_OK)
		err = vs_check(v, on_finding, p, &found);
	if (err != AFS_OK)
		snprintf(line, sizeof(line), "volume %u: %s", p->volume, afs_err_text(err));
	else
		snprintf(line, sizeof(line), "volume %u: %s", p->volume, found ? "damaged" : "whole");
	p->say(p->ctx, line);
}

static afs_err port_repair(void *ctx, int32_t part, uint32_t volume, void (*say)(void *say_ctx, const char *line), void *say_ctx,
	const bool *cancel)
{
	struct cell *c = ((struct overseer *)ctx)->cell;
	struct proving p = {.say = say, .ctx = say_ctx};
	unsigned seen = 0;
	if (!c->store)
		return AFS_ENOENT;
	say(say_ctx, "proving volumes: afscell keeps them whole by itself, and this looks for what a disk has damaged");
	for (struct vs_partition *at = vs_partition_next(c->store, NULL); at; at = vs_partition_next(c->store, at)) {
		CLEANUP(heap) struct vs_listed *list = NULL;
		size_t n = 0;
		if (part >= 0 && vs_partition_id(at) != (unsigned)part)
			continue;
		TRY(vs_volume_list(at, &list, &n));
		for (size_t i = 0; i < n; i++) {
			if (volume && list[i].id != volume)
				continue;
			if (__atomic_load_n(cancel, __ATOMIC_RELAXED))
				return AFS_ECANCELLED;
			p.volume = list[i].id;
			prove(c, at, &p);
			seen++;
		}
	}
	return seen ? AFS_OK : AFS_ENOENT;
}

/* --- life -------------------------------------------------------------------------------------------------- */

static void list_instances(struct overseer *o)
{
	static const char *const programs[] = {[CELL_PT] = "ptserver", [CELL_VL] = "vlserver", [CELL_FS] = "fileserver",
		[CELL_VOL] = "volserver"};
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct bos_instance *in = &o->instances[o->count];
		size_t n = 0;
		if (!cell_role_conf(o->cell->conf, kinds[k].roles[0])->enabled)
			continue;
		*in = (struct bos_instance){.name = kinds[k].name, .type = kinds[k].type};
		for (size_t r = 0; r < kinds[k].role_count; r++) {
			const struct conf_role *role = cell_role_conf(o->cell->conf, kinds[k].roles[r]);
			if (!role->enabled)
				continue;
			char *text = o->parms[o->count][n];
			snprintf(text, sizeof(o->parms[0][0]), "/usr/afs/bin/%s -port %u", programs[kinds[k].roles[r]], role->port);
			in->parms[n++] = text;
		}
		o->kind[o->count++] = &kinds[k];
	}
}

afs_err overseer_new(struct cell *c, struct overseer **out)
{
	struct overseer *o = mem_new(struct overseer);
	if (!o)
		return AFS_ENOMEM;
	o->cell = c;
	list_instances(o);
	o->state = mem_printf("%s/bos.json", c->conf->state);
	o->repair_log = mem_printf("%s/log/SalvageLog", c->conf->state);
	struct bos_config bc = {
		.cell = c->conf->cell,
		.state = o->state,
		.repair_log = o->repair_log,
		.instances = o->instances,
		.instance_count = o->count,
		.ports = {.start = port_start, .stop = port_stop, .host = port_host, .user = port_user, .users_changed = port_users_changed,
			.key = port_key, .log = port_log, .program = port_program, .repair = port_repair},
		.ctx = o,
		.least = (enum rx_sec_level)c->conf->security_least,
		.superuser = port_superuser,
		.done = port_done,
	};
	afs_err err = o->state && o->repair_log ? bos_server_new(&bc, &o->bos) : AFS_ENOMEM;
	if (err != AFS_OK) {
		overseer_free(o);
		return err;
	}
	*out = o;
	return AFS_OK;
}

size_t overseer_services(struct overseer *o, struct rpc_service *out) { return bos_server_services(o->bos, out); }
afs_err overseer_start(struct overseer *o) { return bos_server_start(o->bos); }
void overseer_stop(struct overseer *o) { bos_server_stop(o->bos); }

void overseer_free(struct overseer *o)
{
	if (!o)
		return;
	bos_server_free(o->bos);
	mem_free(o->state);
	mem_free(o->repair_log);
	mem_free(o);
}
