/* SPDX-License-Identifier: BSD-2-Clause
 * Calls about files, volumes, servers and the cache manager itself.  Which words travel in the network's order and which in
 * the host's is pioctl.md 4.4; addresses are always in the network's. */
#include "client/pioctl/pioctl.h"

#include "cell/base/mem.h"
#include "cell/base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { VOLSTAT = 36, MAGIC = 0x12345678, CKSERV_BYTES = 144, OUT_MAX = 2048, SPREF = 8, SERVERS_MAX = 512 };

static int errno_here(afs_err err)
{
	switch (err) {
	case AFS_OK: return 0;
	case AFS_ENOTSUP: return EINVAL;
	default: return afs_err_errno(err);
	}
}
#define GO(expr)                                                                                   \
	do {                                                                                       \
		int eno_ = errno_here(expr);                                                       \
		if (eno_)                                                                          \
			return eno_;                                                               \
	} while (0)

static uint32_t host32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}
static uint16_t host16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, 2);
	return v;
}
static bool root(const struct pioctl *x) { return x->uid == 0; }

static uint8_t *room(struct pioctl *x, size_t n)
{
	uint8_t *p = arena_alloc(x->arena, n ? n : 1, 1);
	if (p) {
		memset(p, 0, n);
		x->out = (struct xdr_bytes){p, (uint32_t)n};
	}
	return p;
}
static int give_text(struct pioctl *x, const char *s)
{
	size_t n = strlen(s) + 1;
	uint8_t *p = n <= 4096 ? room(x, n) : NULL;
	if (!p)
		return n > 4096 ? E2BIG : ENOMEM;
	memcpy(p, s, n);
	return 0;
}
static int give_host(struct pioctl *x, const uint32_t *w, size_t n)
{
	uint8_t *p = room(x, n * 4);
	if (!p)
		return ENOMEM;
	memcpy(p, w, n * 4);
	return 0;
}
static int give_net(struct pioctl *x, const uint32_t *w, size_t n)
{
	uint8_t *p = room(x, n * 4);
	for (size_t i = 0; i < n && p; i++)
		be32_put(p + 4 * i, w[i]);
	return p ? 0 : ENOMEM;
}

/* NUL-terminated input; NULL: it is none. */
static const char *text_at(const struct pioctl *x, size_t at)
{
	if (at >= x->in.len || !memchr(x->in.p + at, 0, x->in.len - at))
		return NULL;
	return (const char *)x->in.p + at;
}

/* --- paths ------------------------------------------------------------------------------------------------------ */

static int find(struct pioctl *x, struct client_file *out)
{
	char rest[PATH_MAX];
	if (!x->path || !pioctl_inside(x->client, x->path, rest, sizeof(rest)))
		return EINVAL;
	GO(client_path(x->client, x->who, rest, x->follow, out));
	return 0;
}

static int cell_index(struct client *c, const char *cell)
{
	char name[RX_NAME_MAX];
	for (size_t i = 0; client_cell_at(c, i, name, NULL, 0, NULL) == AFS_OK; i++)
		if (strcasecmp(name, cell) == 0)
			return (int)i;
	return -1;
}

static int give_fid(struct pioctl *x, const struct client_file *f)
{
	uint32_t w[4] = {(uint32_t)cell_index(x->client, f->cell) + 1, f->fid.Volume, f->fid.Vnode, f->fid.Unique};
	return give_host(x, w, 4);
}

static int volume_get(struct pioctl *x)
{
	struct client_file f;
	CLEANUP(heap) struct client_volume *v = mem_new(struct client_volume);
	int eno = find(x, &f);
	if (eno || !v)
		return eno ? eno : ENOMEM;
	GO(client_volume_get(x->client, x->who, &f, v));
	size_t a = strlen(v->name) + 1, b = strlen(v->offline_msg) + 1, c = strlen(v->motd) + 1;
	uint8_t *p = room(x, VOLSTAT + a + b + c);
	if (!p)
		return ENOMEM;
	be32_put(p, v->id);
	be32_put(p + 4, v->parent_id);
	p[8] = v->online;
	p[9] = v->in_service;
	p[10] = true;
	p[11] = v->needs_salvage;
	be32_put(p + 12, v->type);
	be32_put(p + 16, v->min_quota_kib);
	be32_put(p + 20, v->max_quota_kib);
	be32_put(p + 24, v->used_kib);
	be32_put(p + 28, v->part_free_kib);
	be32_put(p + 32, v->part_size_kib);
	memcpy(p + VOLSTAT, v->name, a);
	memcpy(p + VOLSTAT + a, v->offline_msg, b);
	memcpy(p + VOLSTAT + a + b, v->motd, c);
	return 0;
}

static int volume_set(struct pioctl *x)
{
	struct client_file f;
	if (x->in.len < VOLSTAT + 3)
		return EINVAL;
	const char *name = text_at(x, VOLSTAT), *off = name ? text_at(x, VOLSTAT + strlen(name) + 1) : NULL;
	const char *motd = off ? text_at(x, VOLSTAT + strlen(name) + 1 + strlen(off) + 1) : NULL;
	if (!motd)
		return EINVAL;
	if (strlen(name) > 32 || strlen(off) > 255 || strlen(motd) > 255)
		return E2BIG;
	int eno = find(x, &f);
	if (eno)
		return eno;
	struct client_volume_change change = {(int32_t)be32_get(x->in.p + 16), (int32_t)be32_get(x->in.p + 20), name, off, motd};
	GO(client_volume_set(x->client, x->who, &f, &change));
	uint8_t *p = room(x, x->in.len);
	if (!p)
		return ENOMEM;
	memcpy(p, x->in.p, x->in.len);
	return 0;
}

static int acl_set(struct pioctl *x)
{
	struct client_file f;
	const char *text = text_at(x, 0);
	int eno = text ? find(x, &f) : EINVAL;
	return eno ? eno : errno_here(client_acl_set(x->client, x->who, &f, text));
}

static int acl_get(struct pioctl *x)
{
	struct client_file f;
	CLEANUP(str) char *text = NULL;
	int eno = find(x, &f);
	if (eno)
		return eno;
	GO(client_acl_get(x->client, x->who, &f, &text));
	return give_text(x, text);
}

static int whereis(struct pioctl *x)
{
	struct client_file f;
	uint32_t ips[14] = {0};
	size_t n = 0;
	int eno = find(x, &f);
	if (eno)
		return eno;
	GO(client_whereis(x->client, x->who, &f, ips, 13, &n));
	return give_net(x, ips, n + 1);
}

static int examine(struct pioctl *x, bool access)
{
	struct client_file f;
	struct client_examine e;
	int eno = find(x, &f);
	if (eno)
		return eno;
	GO(client_examine(x->client, x->who, &f, &e));
	if (access) {
		if (x->in.len < 4)
			return EINVAL;
		uint32_t want = be32_get(x->in.p);
		return (e.caller_access & want) == want ? 0 : EACCES;
	}
	uint32_t w[4] = {e.caller_access, 0, e.anonymous_access, 0};
	uint8_t *p = room(x, 16);
	if (!p)
		return ENOMEM;
	memcpy(p, w, 12);
	return 0;
}

static int mount_point(struct pioctl *x, uint32_t call)
{
	struct client_file dir, entry;
	CLEANUP(str) char *target = NULL;
	const char *name = text_at(x, 0);
	int eno = name && *name && !strchr(name, '/') ? find(x, &dir) : EINVAL;
	if (eno)
		return eno;
	switch (call) {
	case PIOCTL_DELETE_MOUNT: return errno_here(client_mount_remove(x->client, x->who, &dir, name));
	case PIOCTL_FLUSHMOUNT: return errno_here(client_flush_mount(x->client, x->who, &dir, name));
	case PIOCTL_LITERALFID:
		GO(client_lookup(x->client, x->who, &dir, name, &entry));
		return give_fid(x, &entry);
	default:
		GO(client_mount_read(x->client, x->who, &dir, name, &target));
		return give_text(x, target);
	}
}

static int on_file(struct pioctl *x, uint32_t call)
{
	struct client_file f;
	int eno = find(x, &f);
	if (eno)
		return eno;
	switch (call) {
	case PIOCTL_FLUSH:
	case PIOCTL_FLUSHCB: return errno_here(client_flush(x->client, &f, false));
	case PIOCTL_FLUSHVOLUME: return errno_here(client_flush(x->client, &f, true));
	case PIOCTL_GETFID: return give_fid(x, &f);
	default: return give_text(x, f.cell); /* FILE_CELL */
	}
}

static int prefetch(struct pioctl *x)
{
	const char *path = text_at(x, 0);
	char rest[PATH_MAX];
	struct client_file f;
	if (!path || !pioctl_inside(x->client, path, rest, sizeof(rest)))
		return EINVAL;
	GO(client_path(x->client, x->who, rest, true, &f));
	return errno_here(client_prefetch(x->client, x->who, &f));
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

static int new_cell(struct pioctl *x)
{
	enum { HOSTS = 8, AT_NAME = 4 + HOSTS * 4 + 12 };
	struct rx_addr vl[HOSTS];
	size_t n = 0;
	const char *name = text_at(x, AT_NAME);
	if (!root(x))
		return EACCES;
	if (!name || host32(x->in.p) != MAGIC)
		return EINVAL;
	uint32_t port = host32(x->in.p + 4 + HOSTS * 4 + 4);
	for (size_t i = 0; i < HOSTS; i++) {
		uint32_t ip = be32_get(x->in.p + 4 + i * 4);
		if (ip)
			vl[n++] = (struct rx_addr){ip, port > 1023 && port < 65536 ? (uint16_t)port : 7003};
	}
	return errno_here(client_cell_add(x->client, &(struct client_cell){name, vl, n}));
}

static int new_alias(struct pioctl *x)
{
	const char *alias = text_at(x, 0), *cell = alias ? text_at(x, strlen(alias) + 1) : NULL;
	if (!root(x))
		return EACCES;
	return cell ? errno_here(client_alias_add(x->client, alias, cell)) : EINVAL;
}

static int get_alias(struct pioctl *x)
{
	char alias[RX_NAME_MAX], cell[RX_NAME_MAX];
	if (x->in.len < 4)
		return EINVAL;
	if (client_alias_at(x->client, host32(x->in.p), alias, cell) != AFS_OK)
		return EDOM;
	size_t a = strlen(alias) + 1, b = strlen(cell) + 1;
	uint8_t *p = room(x, a + b);
	if (!p)
		return ENOMEM;
	memcpy(p, alias, a);
	memcpy(p + a, cell, b);
	return 0;
}

static int cell_status(struct pioctl *x, bool set)
{
	const char *name = text_at(x, set ? 8 : 0);
	if (!name)
		return EINVAL;
	int i = cell_index(x->client, name);
	if (i < 0)
		return ENOENT;
	if (!set) {
		uint32_t w = (i == 0 ? 1u : 0u) | 2u; /* set-id bits are never honoured */
		return give_net(x, &w, 1);
	}
	if (!root(x))
		return EACCES;
	return be32_get(x->in.p) & 2 ? 0 : EINVAL; /* nor can they be made to */
}

/* --- servers ------------------------------------------------------------------------------------------------------ */

static int check_servers(struct pioctl *x)
{
	struct client_knobs k;
	if (x->in.len < CKSERV_BYTES || be32_get(x->in.p) != MAGIC)
		return EINVAL;
	int32_t interval = (int32_t)host32(x->in.p + 136);
	uint32_t flags = host32(x->in.p + 140), size = host32(x->in.p + 132);
	char cell[RX_NAME_MAX] = "";
	if (size) {
		size_t n = strnlen((const char *)x->in.p + 4, 128);
		if (n >= sizeof(cell))
			return EINVAL;
		memcpy(cell, x->in.p + 4, n);
	} else if (flags & 2) {
		GO(client_cell_at(x->client, 0, cell, NULL, 0, NULL));
	}
	if (cell[0] && cell_index(x->client, cell) < 0)
		return ENOENT;
	client_knobs_get(x->client, &k);
	if (interval >= 0) {
		uint32_t was = k.probe_s;
		if (interval > 0) {
			if (!root(x))
				return EACCES;
			k.probe_s = (uint32_t)interval;
			GO(client_knobs_set(x->client, &k));
		}
		return give_host(x, &was, 1);
	}
	uint32_t down[OUT_MAX / 4] = {0};
	size_t n = client_servers_check(x->client, cell[0] ? cell : NULL, flags & 1, down, ARRAY_SIZE(down) - 1);
	return give_net(x, down, n + 1);
}

static int get_prefs(struct pioctl *x)
{
	if (x->in.len < 6)
		return EINVAL;
	size_t at = host16(x->in.p), max = host16(x->in.p + 2);
	bool vl = host16(x->in.p + 4) & 1;
	CLEANUP(heap) struct client_server *all = mem_new_array(SERVERS_MAX, struct client_server);
	if (!all)
		return ENOMEM;
	size_t n = MIN(client_servers(x->client, vl, all, SERVERS_MAX), (size_t)SERVERS_MAX), fits = (OUT_MAX - 4) / SPREF;
	at = MIN(at, n);
	size_t take = MIN(MIN(n - at, max ? max : fits), fits);
	uint8_t *p = room(x, 4 + take * SPREF);
	if (!p)
		return ENOMEM;
	uint16_t next = at + take < n ? (uint16_t)(at + take) : 0, count = (uint16_t)take;
	memcpy(p, &next, 2);
	memcpy(p + 2, &count, 2);
	for (size_t i = 0; i < take; i++) {
		be32_put(p + 4 + i * SPREF, all[at + i].ip);
		memcpy(p + 8 + i * SPREF, &all[at + i].rank, 2);
	}
	return 0;
}

static int set_prefs(struct pioctl *x)
{
	if (!root(x))
		return EACCES;
	if (x->in.len < 4)
		return EINVAL;
	bool vl = host16(x->in.p) & 1;
	size_t n = host16(x->in.p + 2);
	if (n > (x->in.len - 4) / SPREF)
		return EINVAL;
	for (size_t i = 0; i < n; i++)
		client_server_prefer(x->client, vl, be32_get(x->in.p + 4 + i * SPREF), host16(x->in.p + 8 + i * SPREF));
	return 0;
}

/* --- the cache manager ---------------------------------------------------------------------------------------------- */

static int sysname(struct pioctl *x)
{
	struct client_knobs k;
	if (x->in.len < 4)
		return EINVAL;
	client_knobs_get(x->client, &k);
	uint32_t n = be32_get(x->in.p) & 0x7fff;
	if (n) {
		if (!root(x))
			return EACCES;
		if (n > CLIENT_SYSNAMES)
			return EINVAL;
		size_t at = 4;
		for (uint32_t i = 0; i < n; i++) {
			const char *s = text_at(x, at);
			if (!s || strlen(s) >= CLIENT_SYSNAME_MAX)
				return EINVAL;
			snprintf(k.sysname[i], CLIENT_SYSNAME_MAX, "%s", s);
			at += strlen(s) + 1;
		}
		k.sysname_n = n;
		return errno_here(client_knobs_set(x->client, &k));
	}
	size_t len = 4;
	for (unsigned i = 0; i < k.sysname_n; i++)
		len += strlen(k.sysname[i]) + 1;
	uint8_t *p = room(x, len);
	if (!p)
		return ENOMEM;
	be32_put(p, k.sysname_n);
	p += 4;
	for (unsigned i = 0; i < k.sysname_n; i++) {
		memcpy(p, k.sysname[i], strlen(k.sysname[i]) + 1);
		p += strlen(k.sysname[i]) + 1;
	}
	return 0;
}

static int cache_parms(struct pioctl *x)
{
	struct client_cache_info i;
	client_cache_info(x->client, &i);
	uint32_t w[16] = {(uint32_t)MIN(i.max_bytes >> 10, INT32_MAX), (uint32_t)MIN(i.used_bytes >> 10, INT32_MAX),
		(uint32_t)i.chunks, 0, (uint32_t)i.chunks};
	return give_net(x, w, 16);
}

static int init_parms(struct pioctl *x)
{
	struct client_cache_info i;
	client_cache_info(x->client, &i);
	uint32_t w[16] = {1, (uint32_t)i.chunks, (uint32_t)i.files, (uint32_t)i.chunks, 0, 20, 20,
		(uint32_t)MIN(i.start_bytes >> 10, INT32_MAX), i.memory ? 2 : 0};
	return give_host(x, w, 16);
}

/* A number that is asked for, and that root may set. */
static int number(struct pioctl *x, uint32_t call)
{
	struct client_knobs k;
	client_knobs_get(x->client, &k);
	uint32_t in = x->in.len >= 4 ? host32(x->in.p) : 0;
	bool set = false;
	uint32_t w[2] = {0, 0};
	switch (call) {
	case PIOCTL_GETCRYPT: w[0] = k.crypt; return give_host(x, w, 1);
	case PIOCTL_SETCRYPT:
		if (in > 1 || x->in.len < 4)
			return EINVAL;
		k.crypt = in;
		set = true;
		break;
	case PIOCTL_MARINER: {
		uint32_t was = k.monitor_ip, ip = x->in.len >= 4 ? be32_get(x->in.p) : 0;
		if (ip) {
			if (!root(x))
				return EACCES;
			k.monitor_ip = ip;
			GO(client_knobs_set(x->client, &k));
		}
		return give_net(x, &was, 1);
	}
	case PIOCTL_STORBEHIND:
		if (x->in.len < 8)
			return EINVAL;
		if ((int32_t)host32(x->in.p + 4) >= 0) {
			if (!root(x))
				return EPERM;
			k.store_behind = (int32_t)host32(x->in.p + 4);
			GO(client_knobs_set(x->client, &k));
		}
		w[1] = (uint32_t)k.store_behind;
		w[0] = (int32_t)in >= 0 ? in : w[1];
		return give_host(x, w, 2);
	case PIOCTL_BYPASS:
		if (x->in.len >= 4) {
			if (!root(x))
				return EPERM;
			k.bypass_threshold = (int32_t)in;
			GO(client_knobs_set(x->client, &k));
		}
		w[0] = (uint32_t)k.bypass_threshold;
		return give_host(x, w, 1);
	case PIOCTL_GAG: k.messages = in; set = true; break;
	case PIOCTL_PRECACHE: k.precache_kib = in; set = true; break;
	case PIOCTL_RXSTAT_PROC:
		k.rxstat_proc = in & 1 ? true : in & 2 ? false : k.rxstat_proc;
		set = true;
		break;
	case PIOCTL_RXSTAT_PEER:
		k.rxstat_peer = in & 1 ? true : in & 2 ? false : k.rxstat_peer;
		set = true;
		break;
	default: return EINVAL;
	}
	if (set && !root(x))
		return EPERM;
	return errno_here(client_knobs_set(x->client, &k));
}

int pioctl_more(struct pioctl *x, uint32_t call)
{
	uint32_t w;
	switch (call) {
	case PIOCTL_SETAL: return acl_set(x);
	case PIOCTL_GETAL: return acl_get(x);
	case PIOCTL_GETVOLSTAT: return volume_get(x);
	case PIOCTL_SETVOLSTAT: return volume_set(x);
	case PIOCTL_CKSERV: return check_servers(x);
	case PIOCTL_CKBACK: client_check_volumes(x->client); return 0;
	case PIOCTL_WHEREIS: return whereis(x);
	case PIOCTL_PREFETCH: return prefetch(x);
	case PIOCTL_ENGROUP:
	case PIOCTL_DISGROUP: return 0;
	case PIOCTL_ACCESS: return examine(x, true);
	case PIOCTL_CALLERACCESS: return examine(x, false);
	case PIOCTL_FLUSH:
	case PIOCTL_FLUSHCB:
	case PIOCTL_FLUSHVOLUME:
	case PIOCTL_GETFID:
	case PIOCTL_FILE_CELL: return on_file(x, call);
	case PIOCTL_DELETE_MOUNT:
	case PIOCTL_STAT_MOUNT:
	case PIOCTL_FLUSHMOUNT:
	case PIOCTL_LITERALFID: return mount_point(x, call);
	case PIOCTL_SETCACHESIZE:
		if (!root(x))
			return EACCES;
		return x->in.len < 4 ? EINVAL : errno_here(client_cache_resize(x->client, (uint64_t)be32_get(x->in.p) << 10));
	case PIOCTL_NEWCELL: return new_cell(x);
	case PIOCTL_NEWALIAS: return new_alias(x);
	case PIOCTL_GETALIAS: return get_alias(x);
	case PIOCTL_GETCELLSTATUS: return cell_status(x, false);
	case PIOCTL_SETCELLSTATUS: return cell_status(x, true);
	case PIOCTL_SYSNAME: return sysname(x);
	case PIOCTL_EXPORTAFS:
	case PIOCTL_NFS_NUKE: return ENODEV; /* no translator */
	case PIOCTL_GETCACHEPARMS: return cache_parms(x);
	case PIOCTL_GETINITPARAMS: return init_parms(x);
	case PIOCTL_GETSPREFS: return get_prefs(x);
	case PIOCTL_SETSPREFS: return set_prefs(x);
	case PIOCTL_GETCPREFS: /* servers are told no addresses: they call where the calls come from */
		return room(x, 4) ? 0 : ENOMEM;
	case PIOCTL_SETCPREFS:
	case PIOCTL_CBADDR: return root(x) ? EINVAL : EACCES;
	case PIOCTL_GCPAGS: return root(x) ? 0 : EACCES;
	case PIOCTL_DISCON: return EINVAL;
	case PIOCTL_NEWUUID:
		if (!root(x))
			return EACCES;
		client_uuid_new(x->client);
		return 0;
	case PIOCTL_GETPAG:
		w = x->who != x->uid && x->who >> 24 == 0x41 ? x->who : UINT32_MAX;
		return give_host(x, &w, 1);
	case PIOCTL_FLUSHALL:
		if (!root(x))
			return EACCES;
		client_flush_all(x->client);
		return 0;
	default: return number(x, call);
	}
}
