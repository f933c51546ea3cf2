/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/adapters.h"

#include "cell/base/log.h"
#include "cell/base/mem.h"
#include "cell/base/mtx.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* --- addresses ----------------------------------------------------------------------------- */

static size_t all_ips(uint32_t *out, size_t cap)
{
	struct ifaddrs *list = NULL;
	size_t n = 0;
	if (getifaddrs(&list) == 0) {
		for (const struct ifaddrs *i = list; i && n < cap; i = i->ifa_next) {
			if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP)
				|| (i->ifa_flags & IFF_LOOPBACK))
				continue;
			struct sockaddr_in sin;
			memcpy(&sin, i->ifa_addr, sizeof(sin));
			out[n++] = ntohl(sin.sin_addr.s_addr);
		}
		freeifaddrs(list);
	}
	if (n == 0 && cap)
		out[n++] = INADDR_LOOPBACK;
	return n;
}

size_t adapters_own_ips(const struct conf *conf, uint32_t *out, size_t cap)
{
	if (conf->listen.n == 1 && conf->listen.v[0] == 0)
		return all_ips(out, cap);
	/* Who can be reached from elsewhere does not tell others of loopback. */
	size_t n = 0;
	for (size_t i = 0; i < conf->listen.n && n < cap; i++)
		if (conf->listen.v[i] >> 24 != IN_LOOPBACKNET)
			out[n++] = conf->listen.v[i];
	for (size_t i = 0; n == 0 && i < conf->listen.n && i < cap; i++)
		out[i] = conf->listen.v[i];
	return n ? n : MIN(conf->listen.n, cap);
}

size_t adapters_database_servers(const struct conf *conf, uint16_t port, struct rx_addr *out, size_t cap)
{
	uint32_t ips[ADAPTERS_ADDRS_MAX];
	size_t n = conf->database_servers.n;
	if (n == 0)
		n = MIN(adapters_own_ips(conf, ips, ADAPTERS_ADDRS_MAX), (size_t)1); /* one server, not one per address */
	else
		memcpy(ips, conf->database_servers.v, MIN(n, (size_t)ADAPTERS_ADDRS_MAX) * sizeof(*ips));
	n = MIN(n, MIN(cap, (size_t)ADAPTERS_ADDRS_MAX));
	for (size_t i = 0; i < n; i++)
		out[i] = (struct rx_addr){ips[i], port};
	return n;
}

char *adapters_keytab(const struct conf *conf)
{
	return conf->realm.mode == CONF_REALM_EMBEDDED ? mem_printf("%s/keys/afs.keytab", conf->state)
						       : mem_strdup(conf->realm.keytab);
}

/* --- people -------------------------------------------------------------------------------- */

struct adapters {
	struct keys_realms realms;
	char *cell;
	char **local; /* the realm, then the further ones */
	size_t local_n;
	struct mtx lock;
	char **administrators GUARDED_BY(lock), **superusers GUARDED_BY(lock);
	size_t administrator_count GUARDED_BY(lock), superuser_count GUARDED_BY(lock);
	struct pt *pt;
	struct self *self;
};

struct adapters *adapters_new(const char *cell, const char *realm, const struct conf_names *local)
{
	struct adapters *a = mem_new(struct adapters);
	if (!a)
		return NULL;
	mtx_init(&a->lock, RANK_LEAF);
	a->cell = mem_strdup(cell);
	a->local = mem_new_array(local->n + 1, char *);
	bool whole = a->cell && a->local;
	for (size_t i = 0; whole && i <= local->n; i++) {
		a->local[i] = mem_strdup(i ? local->v[i - 1] : realm);
		whole = a->local[i];
		a->local_n += whole;
	}
	if (!whole) {
		adapters_free(a);
		return NULL;
	}
	a->realms = (struct keys_realms){.cell = a->cell, .local = (const char *const *)a->local, .local_n = a->local_n};
	return a;
}

static void free_names(char **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		mem_free(v[i]);
	mem_free(v);
}

void adapters_free(struct adapters *a)
{
	if (!a)
		return;
	mtx_lock(&a->lock);
	free_names(a->administrators, a->administrator_count);
	free_names(a->superusers, a->superuser_count);
	mtx_unlock(&a->lock);
	mtx_fini(&a->lock);
	mem_free(a->cell);
	free_names(a->local, a->local_n);
	mem_free(a);
}

const struct keys_realms *adapters_realms(const struct adapters *a) { return &a->realms; }

/* Puts a copy of `names` in place of a list. */
static afs_err set_names(struct adapters *a, const struct conf_names *names, char ***list, size_t *count)
{
	char **copy = mem_new_array(names->n + 1, char *);
	size_t n = 0;
	while (copy && n < names->n && (copy[n] = mem_strdup(names->v[n])))
		n++;
	if (!copy || n < names->n) {
		free_names(copy, copy ? n : 0);
		return AFS_ENOMEM;
	}
	mtx_lock(&a->lock);
	char **old = *list;
	size_t old_n = *count;
	*list = copy;
	*count = n;
	mtx_unlock(&a->lock);
	free_names(old, old_n);
	return AFS_OK;
}

afs_err adapters_set_administrators(struct adapters *a, const struct conf_names *names)
{
	return set_names(a, names, &a->administrators, &a->administrator_count);
}

afs_err adapters_set_superusers(struct adapters *a, const struct conf_names *names)
{
	return set_names(a, names, &a->superusers, &a->superuser_count);
}

bool adapters_administrator(struct adapters *a, size_t i, char *out, size_t size)
{
	mtx_lock(&a->lock);
	bool is = i < a->administrator_count;
	if (is)
		snprintf(out, size, "%s", a->administrators[i]);
	mtx_unlock(&a->lock);
	return is;
}

void adapters_set_people(struct adapters *a, struct pt *pt, struct self *self)
{
	a->pt = pt;
	a->self = self;
}

void adapters_afs_name(void *ctx, const struct rx_caller *caller, struct keys_name *out)
{
	struct adapters *a = ctx;
	keys_afs_name(&a->realms, caller, out);
}

bool adapters_superuser(void *ctx, const struct rx_caller *caller)
{
	struct adapters *a = ctx;
	struct keys_name name;
	keys_afs_name(&a->realms, caller, &name);
	if (name.localauth)
		return true;
	if (!name.authenticated)
		return false;
	bool found = false;
	mtx_lock(&a->lock);
	for (size_t i = 0; i < a->administrator_count && name.local && !found; i++)
		found = strcmp(a->administrators[i], name.text) == 0;
	for (size_t i = 0; i < a->superuser_count && !found; i++) /* a foreign one is named with his realm */
		found = strcmp(a->superusers[i], name.text) == 0;
	mtx_unlock(&a->lock);
	return found;
}

/* A protection database elsewhere: name to id, id to groups.  AFS_EAGAIN when it cannot be asked. */
static afs_err identify_far(struct adapters *a, struct keys_name *name, struct fs_identity *out)
{
	for (char *p = name->text; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	out->id = AFS_ANONYMOUS;
	if (name->localauth) {
		static const int32_t ids[] = {AFS_ADMINISTRATORS, AFS_AUTHUSER, AFS_ANYUSER};
		out->admin = true;
		out->cps.ids = mem_new_array(ARRAY_SIZE(ids), int32_t);
		if (!out->cps.ids)
			return AFS_ENOMEM;
		memcpy(out->cps.ids, ids, sizeof(ids));
		out->cps.n = ARRAY_SIZE(ids);
		return AFS_OK;
	}
	if (name->authenticated) {
		afs_err err = self_id_of(a->self, name->text, &out->id);
		if (err != AFS_OK && err != AFS_ENOENT)
			return AFS_EAGAIN;
		if (err == AFS_ENOENT)
			out->id = AFS_ANONYMOUS;
	}
	afs_err err = self_cps(a->self, out->id, &out->cps.ids, &out->cps.n);
	if (err != AFS_OK)
		return err == AFS_ENOMEM ? err : AFS_EAGAIN;
	for (uint32_t i = 0; i < out->cps.n; i++)
		out->admin = out->admin || (name->local && out->cps.ids[i] == AFS_ADMINISTRATORS);
	return AFS_OK;
}

static afs_err identify(void *ctx, const struct rx_caller *caller, struct fs_identity *out)
{
	struct adapters *a = ctx;
	struct keys_name name;
	*out = (struct fs_identity){};
	keys_afs_name(&a->realms, caller, &name);
	if (!a->pt)
		return identify_far(a, &name, out);
	struct pt_identity id = {};
	TRY(pt_identify(a->pt, &name, &id));
	*out = (struct fs_identity){.id = id.id, .admin = id.admin, .cps = {id.cps.v, id.cps.n}};
	return AFS_OK;
}

static afs_err host_groups(void *ctx, uint32_t ip, struct fs_cps *out)
{
	struct adapters *a = ctx;
	*out = (struct fs_cps){};
	if (!a->pt)
		return self_host_cps(a->self, ip, &out->ids, &out->n);
	struct pt_ids ids = {};
	TRY(pt_host_groups(a->pt, ip, &ids));
	*out = (struct fs_cps){ids.v, ids.n};
	return AFS_OK;
}

static uint64_t generation(void *ctx)
{
	struct adapters *a = ctx;
	return pt_generation(a->pt);
}

static afs_err name_of(void *ctx, int32_t id, char out[AFS_PRNAME_MAX + 1])
{
	struct adapters *a = ctx;
	return self_name_of(a->self, id, out);
}

static afs_err id_of(void *ctx, const char *name, int32_t *id)
{
	struct adapters *a = ctx;
	return self_id_of(a->self, name, id);
}

void adapters_people_port(struct adapters *a, struct fs_people_port *out)
{
	*out = (struct fs_people_port){
		.ctx = a,
		.identify = identify,
		.host_groups = host_groups,
		.generation = a->pt ? generation : NULL,
		.name_of = name_of,
		.id_of = id_of,
		.superuser = adapters_superuser,
	};
}
