/* SPDX-License-Identifier: BSD-2-Clause
 * What fs tools ask and set beside files: servers and their ranks, names for @sys, PAGs, the cache's size. */
#include "client/cm/cm.h"
#include "client/cm/stubs.h"

#include "cell/base/log.h"
#include "cell/base/rand.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { PROBE_DEFAULT_S = 180, PAGS_MAX = 65536, RANK_HERE = 5000, RANK_FAR = 20000, RANK_WORST = 60000 };

static struct cm *of(struct client *c) { return (struct cm *)c; }

void cm_knobs_init(struct cm *cm)
{
	struct utsname u;
	const char *arch = uname(&u) == 0 ? u.machine : "unknown";
	if (strcmp(arch, "x86_64") == 0)
		arch = "amd64";
	else if (strcmp(arch, "aarch64") == 0)
		arch = "arm64";
	cm->knobs = (struct client_knobs){.sysname_n = 1, .probe_s = PROBE_DEFAULT_S, .monitor_ip = UINT32_MAX,
		.crypt = cm->config.level == RX_LEVEL_CRYPT, .bypass_threshold = -1};
	snprintf(cm->knobs.sysname[0], CLIENT_SYSNAME_MAX, "%s_linux26", arch);
	cm->cache_start = cm->config.cache_bytes;
}

void client_knobs_get(struct client *c, struct client_knobs *out)
{
	mtx_lock(&of(c)->cells_lock);
	*out = of(c)->knobs;
	mtx_unlock(&of(c)->cells_lock);
}

static void drop_all_conns(struct cm *cm);

afs_err client_knobs_set(struct client *c, const struct client_knobs *in)
{
	struct cm *cm = of(c);
	for (unsigned i = 0; i < MIN(in->sysname_n, (unsigned)CLIENT_SYSNAMES); i++) {
		const char *s = in->sysname[i];
		if (!*s || !memchr(s, 0, CLIENT_SYSNAME_MAX) || strchr(s, '/') || strcmp(s, ".") == 0 || strcmp(s, "..") == 0)
			return AFS_EINVAL;
	}
	if (!in->sysname_n || in->sysname_n > CLIENT_SYSNAMES)
		return AFS_EINVAL;
	mtx_lock(&cm->cells_lock);
	bool level = cm->knobs.crypt != in->crypt;
	cm->knobs = *in;
	if (level)
		cm->config.level = in->crypt ? RX_LEVEL_CRYPT : RX_LEVEL_CLEAR;
	mtx_unlock(&cm->cells_lock);
	if (level)
		drop_all_conns(cm);
	return AFS_OK;
}

bool cm_sysname(struct cm *cm, const char *name, unsigned n, char *out, size_t cap)
{
	size_t len = strlen(name);
	if (len < 4 || strcmp(name + len - 4, "@sys") != 0)
		return false;
	mtx_lock(&cm->cells_lock);
	bool have = n < cm->knobs.sysname_n;
	int k = have ? snprintf(out, cap, "%.*s%s", (int)len - 4, name, cm->knobs.sysname[n]) : 0;
	mtx_unlock(&cm->cells_lock);
	return have && (size_t)k < cap;
}

/* --- identities -------------------------------------------------------------------------------------------- */

uint32_t client_pag_new(struct client *c, uid_t uid)
{
	struct cm *cm = of(c);
	uint32_t pag = 0;
	mtx_lock(&cm->cells_lock);
	if (cm->pag_n == cm->pag_cap) {
		size_t cap = cm->pag_cap ? cm->pag_cap * 2 : 64;
		struct cm_pag *more = cap <= PAGS_MAX ? mem_resize(cm->pags, cm->pag_cap, cap, sizeof(*more)) : NULL;
		if (more) {
			cm->pags = more;
			cm->pag_cap = cap;
		}
	}
	if (cm->pag_n < cm->pag_cap) {
		for (bool taken = true; taken;) {
			pag = 0x41000000u | (rand_u32() & 0xffffff);
			taken = false;
			for (size_t i = 0; i < cm->pag_n; i++)
				taken |= cm->pags[i].pag == pag;
		}
		cm->pags[cm->pag_n++] = (struct cm_pag){pag, uid};
	}
	mtx_unlock(&cm->cells_lock);
	return pag;
}

uid_t client_pag_owner(struct client *c, uint32_t pag)
{
	struct cm *cm = of(c);
	uid_t owner = (uid_t)-1;
	mtx_lock(&cm->cells_lock);
	for (size_t i = 0; i < cm->pag_n; i++)
		if (cm->pags[i].pag == pag)
			owner = cm->pags[i].owner;
	mtx_unlock(&cm->cells_lock);
	return owner;
}

static uint32_t pag_of_two(uint32_t g0, uint32_t g1)
{
	g0 -= 0x3f00;
	g1 -= 0x3f00;
	if (g0 >= 0xc000 || g1 >= 0xc000)
		return 0;
	uint32_t low = (g0 & 0x3fff) << 14 | (g1 & 0x3fff), high = (g0 >> 14) * 3 + (g1 >> 14);
	uint32_t pag = high << 28 | low;
	return pag >> 24 == 0x41 ? pag : 0;
}

uid_t client_identity_of(struct client *c, uid_t uid, const uint32_t *groups, size_t n)
{
	struct cm *cm = of(c);
	uid_t who = cm_is_pag(uid) ? (uid_t)-1 : uid;
	if (!cm->pag_n)
		return who;
	uint32_t pag = 0;
	for (size_t i = 0; i < n && !pag; i++)
		if (cm_is_pag(groups[i]))
			pag = groups[i];
	for (size_t i = 0; i < n && !pag; i++) /* the kernel sorts groups: both orders */
		for (size_t k = 0; k < n && !pag; k++)
			if (i != k)
				pag = pag_of_two(groups[i], groups[k]);
	bool mine = false;
	mtx_lock(&cm->cells_lock);
	for (size_t i = 0; i < cm->pag_n && pag && !mine; i++)
		mine = cm->pags[i].pag == pag;
	mtx_unlock(&cm->cells_lock);
	return mine ? pag : who;
}

uid_t client_identity(struct client *c, uid_t uid, pid_t pid)
{
	struct cm *cm = of(c);
	if (!cm->pag_n || pid <= 0)
		return cm_is_pag(uid) ? (uid_t)-1 : uid;
	char path[40], line[8192];
	uint32_t groups[64];
	size_t n = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "Groups:", 7) != 0)
			continue;
		for (char *p = line + 7, *end; n < ARRAY_SIZE(groups); p = end) {
			unsigned long g = strtoul(p, &end, 10);
			if (end == p)
				break;
			groups[n++] = (uint32_t)g;
		}
		break;
	}
	if (f)
		fclose(f);
	return client_identity_of(c, uid, groups, n);
}

/* --- servers ------------------------------------------------------------------------------------------------ */

uint16_t cm_server_rank(const struct cm *cm, const struct cm_server *s)
{
	(void)cm;
	if (s->rank)
		return s->rank;
	uint32_t ip = s->addrs[s->addr_good].ip;
	if (ip >> 24 == 127)
		return RANK_HERE;
	return (uint16_t)MIN(RANK_FAR + s->rtt_ns / 10000, RANK_WORST); /* a step for each 10 us */
}

size_t client_servers(struct client *c, bool vl, struct client_server *out, size_t cap)
{
	struct cm *cm = of(c);
	size_t n = 0;
	if (vl) {
		for (size_t i = 0; i < cm->cell_n; i++) {
			const struct cm_cell *cell = &cm->cells[i];
			for (size_t k = 0; k < cell->vl_n; k++, n++) {
				if (n >= cap)
					continue;
				out[n] = (struct client_server){.ip = cell->vl[k].ip, .vl = true, .down = cell->vl_down >> k & 1,
					.rank = cell->vl_rank[k] ? cell->vl_rank[k] : (uint16_t)(RANK_FAR + k), .rank_set = cell->vl_rank[k]};
				memcpy(out[n].cell, cell->name, sizeof(out[n].cell));
			}
		}
		return n;
	}
	mtx_lock(&cm->volumes_lock);
	list_each(e, &cm->servers)
	{
		const struct cm_server *s = list_entry(e, struct cm_server, all);
		for (unsigned k = 0; k < s->addr_n; k++, n++)
			if (n < cap)
				out[n] = (struct client_server){.ip = s->addrs[k].ip, .down = s->down_until != 0,
					.rank = cm_server_rank(cm, s), .rank_set = s->rank, .rtt_us = (uint32_t)(s->rtt_ns / 1000)};
	}
	mtx_unlock(&cm->volumes_lock);
	return n;
}

void client_server_prefer(struct client *c, bool vl, uint32_t ip, uint16_t rank)
{
	struct cm *cm = of(c);
	for (size_t i = 0; i < cm->cell_n && vl; i++)
		for (size_t k = 0; k < cm->cells[i].vl_n; k++)
			if (cm->cells[i].vl[k].ip == ip)
				cm->cells[i].vl_rank[k] = rank;
	if (vl)
		return;
	mtx_lock(&cm->volumes_lock);
	list_each(e, &cm->servers)
	{
		struct cm_server *s = list_entry(e, struct cm_server, all);
		for (unsigned k = 0; k < s->addr_n; k++)
			if (s->addrs[k].ip == ip)
				s->rank = rank;
	}
	size_t cursor = 0;
	for (struct map_node *n = map_walk(&cm->volumes, &cursor, NULL); n; n = map_walk(&cm->volumes, &cursor, n->next)) {
		struct cm_volume *v = container_of(n, struct cm_volume, by_id);
		for (unsigned k = 0; k < v->site_n; k++)
			if (cm_server_rank(cm, v->sites[k]) < cm_server_rank(cm, v->sites[v->site_good]))
				v->site_good = k;
	}
	mtx_unlock(&cm->volumes_lock);
}

size_t client_servers_check(struct client *c, const char *cell, bool fast, uint32_t *down, size_t cap)
{
	struct cm *cm = of(c);
	struct cm_server *all[256];
	size_t n = 0, found = 0;
	mtx_lock(&cm->volumes_lock);
	list_each(e, &cm->servers)
	{
		struct cm_server *s = list_entry(e, struct cm_server, all);
		if (n < ARRAY_SIZE(all) && s->addr_n && (!cell || (s->cell && strcasecmp(s->cell->name, cell) == 0)))
			all[n++] = s; /* servers stay for the client's life */
	}
	mtx_unlock(&cm->volumes_lock);
	for (size_t i = 0; i < n; i++) {
		struct rpc_conn *conn;
		bool up = !all[i]->down_until;
		if (!fast && cm_conn_get(cm, cm->cells[0].anonymous, all[i], &conn) == AFS_OK) {
			struct fs_get_time_in in = {};
			struct fs_get_time_out out = {0};
			struct rpc_result res = {0};
			afs_err err = fs_call_get_time(conn, &in, &out, &res);
			up = err != AFS_EDEAD && err != AFS_ETIMEDOUT && err != AFS_ENOSERVICE;
			int64_t rtt = rpc_conn_rtt_ns(conn);
			mtx_lock(&cm->volumes_lock);
			all[i]->down_until = up ? 0 : cm_now(cm) + SEC(5);
			if (up && rtt)
				all[i]->rtt_ns = rtt;
			mtx_unlock(&cm->volumes_lock);
			if (!up)
				cm_conn_drop(cm, cm->cells[0].anonymous, conn);
			rpc_conn_unref(conn);
		}
		if (!up && found < cap)
			down[found++] = all[i]->addrs[0].ip;
	}
	return found;
}

/* --- files ---------------------------------------------------------------------------------------------------- */

static afs_err vnode_of(struct cm *cm, const struct client_file *f, struct cm_vnode **out)
{
	struct cm_cell *cell = cm_cell_find(cm, f->cell, strnlen(f->cell, sizeof(f->cell)));
	if (!cell)
		return AFS_ENODEV;
	if (f->fid.Volume == 0) {
		*out = cm_vnode_find(cm, cell, &f->fid);
		return *out ? AFS_OK : AFS_ENOENT;
	}
	return cm_vnode_get(cm, cell, &f->fid, out);
}

afs_err client_lookup(struct client *c, uid_t uid, const struct client_file *dir, const char *name, struct client_file *out)
{
	CLEANUP(cm_vnode) struct cm_vnode *d = NULL;
	struct cm_found found;
	TRY(vnode_of(of(c), dir, &d));
	TRY(cm_lookup(d, uid, name, &found));
	if (!found.vnode)
		return AFS_ENOENT;
	*out = (struct client_file){.fid = found.vnode->fid};
	memcpy(out->cell, found.vnode->vol->cell->name, sizeof(out->cell));
	cm_vnode_unref(found.vnode);
	return AFS_OK;
}

afs_err client_flush_mount(struct client *c, uid_t uid, const struct client_file *dir, const char *name)
{
	CLEANUP(cm_vnode) struct cm_vnode *d = NULL;
	struct cm_found found;
	TRY(vnode_of(of(c), dir, &d));
	TRY(cm_lookup(d, uid, name, &found));
	if (!found.vnode)
		return AFS_ENOENT;
	struct cm_vnode *v = found.vnode;
	mtx_lock(&v->lock);
	bool mount = cm_is_mount_locked(v);
	if (mount && v->vol->id) {
		v->mount_until = 0;
		v->promise = 0;
		mem_free(TAKE(v->target));
		cm_event(v, CM_EV_ATTR);
	}
	mtx_unlock(&v->lock);
	cm_vnode_unref(v);
	return mount ? AFS_OK : AFS_EINVAL;
}

static void flush_any(struct cm_vnode *v, void *ctx)
{
	struct client_file f = {.fid = v->fid};
	memcpy(f.cell, v->vol->cell->name, sizeof(f.cell));
	(void)client_flush(ctx, &f, false); /* the dynamic root stays as it is */
}

void client_flush_all(struct client *c) { cm_vnodes_each(of(c), NULL, flush_any, c); }

static void run_prefetch(struct cm *cm, struct cm_job *job)
{
	struct cm_file *f;
	char *buf = cm_buf_get(cm);
	if (buf && cm_open_new(job->vnode, job->ident->uid, 0, &f) == AFS_OK) {
		size_t got = 1;
		for (uint64_t at = 0; got && !cm->stopping && cm_read(f, at, buf, CM_BUF, &got) == AFS_OK; at += got)
			;
		cm_close(f);
	}
	cm_buf_put(cm, buf);
	cm_job_done(cm, job);
}

afs_err client_prefetch(struct client *c, uid_t uid, const struct client_file *f)
{
	struct cm *cm = of(c);
	struct cm_vnode *v;
	TRY(vnode_of(cm, f, &v));
	afs_err err = cm_access(v, uid, R_OK);
	if (err) {
		cm_vnode_unref(v);
		return err;
	}
	struct cm_job job = {.run = run_prefetch, .vnode = v, .ident = cm_ident_get(cm, v->vol->cell, uid)};
	return cm_job_add(cm, job) ? AFS_OK : AFS_EAGAIN;
}

afs_err client_volume_set(struct client *c, uid_t uid, const struct client_file *f, const struct client_volume_change *change)
{
	struct cm *cm = of(c);
	CLEANUP(cm_vnode) struct cm_vnode *v = NULL;
	TRY(vnode_of(cm, f, &v));
	if (v->vol->id == 0 || cm_volume_is_ro(v->vol))
		return AFS_EROFS;
	struct cm_ident *id = cm_ident_get(cm, v->vol->cell, uid);
	struct fs_set_volume_status_in in = {.Volume = v->vol->id,
		.Status = {(change->max_quota_kib >= 0 ? FS_SET_MAX_QUOTA : 0u) | (change->min_quota_kib >= 0 ? FS_SET_MIN_QUOTA : 0u),
			change->min_quota_kib >= 0 ? change->min_quota_kib : 0, change->max_quota_kib >= 0 ? change->max_quota_kib : 0},
		.Name = XDR_STR_OF(change->name),
		.OfflineMsg = XDR_STR_OF(change->offline_msg),
		.Motd = XDR_STR_OF(change->motd)};
	struct fs_set_volume_status_out out = {};
	struct cm_try t = {.cm = cm, .vol = v->vol, .ident = id};
	while (cm_try(&t))
		t.err = fs_call_set_volume_status(t.conn, &in, &out, &t.res);
	afs_err err = cm_try_end(&t);
	cm_ident_unref(cm, id);
	mtx_lock(&cm->volumes_lock);
	v->vol->status_until = 0;
	mtx_unlock(&cm->volumes_lock);
	return err;
}

/* --- the cache, and us ------------------------------------------------------------------------------------------ */

afs_err client_cache_resize(struct client *c, uint64_t bytes)
{
	struct cm *cm = of(c);
	if (!cm->cache_dir)
		return AFS_EROFS;
	bytes = MAX(bytes ? bytes : cm->cache_start, CACHE_MIN_BYTES);
	cache_resize(cm->cache, bytes);
	cm->config.cache_bytes = bytes;
	cm->dirty_max = MAX((uint64_t)4 << 20, MIN((uint64_t)256 << 20, bytes / 4));
	return AFS_OK;
}

void client_cache_info(struct client *c, struct client_cache_info *out)
{
	struct cm *cm = of(c);
	struct cache_usage u;
	cache_usage(cm->cache, &u);
	*out = (struct client_cache_info){cm->config.cache_bytes, u.used, u.dirty, u.files, u.chunks, cm->cache_start, !cm->cache_dir};
}

void client_uuid_new(struct client *c)
{
	struct cm *cm = of(c);
	cm->uuid = afs_uuid_random(); /* servers ask for it with the next connection */
	drop_all_conns(cm);
	atomic_fetch_add(&cm->resets, 1);
}

static void drop_conns_of(struct cm *cm, struct cm_ident *id)
{
	for (;;) {
		struct rpc_conn *conn = cm_conn_any(cm, id);
		if (!conn)
			return;
		cm_conn_drop(cm, id, conn);
		rpc_conn_unref(conn);
	}
}

static void drop_all_conns(struct cm *cm)
{
	for (size_t i = 0; i < cm->cell_n; i++)
		drop_conns_of(cm, cm->cells[i].anonymous);
	struct cm_ident *all[256];
	size_t n = 0;
	mtx_lock(&cm->users_lock);
	list_each(e, &cm->users)
	{
		if (n < ARRAY_SIZE(all))
			all[n++] = cm_ident_ref(list_entry(e, struct cm_ident, of_users));
	}
	mtx_unlock(&cm->users_lock);
	for (size_t i = 0; i < n; i++) {
		drop_conns_of(cm, all[i]);
		cm_ident_unref(cm, all[i]);
	}
}
