/* SPDX-License-Identifier: BSD-2-Clause
 * Cells, their aliases, and the dynamic root that shows them.  A cell once met stays for the client's life. */
#include "client/cm/cm.h"

#include "cell/base/log.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <ctype.h>
#include <netdb.h>
#include <resolv.h>
#include <stdio.h>
#include <string.h>

enum { VL_MAX = 8, DNS_ANSWER = 4096, ALIAS_VNODE = 1 << 20 };
#define FOREVER (INT64_MAX / 2)
#define UNKNOWN_FOR SEC(60)

static struct cm *of(struct client *c) { return (struct cm *)c; }

struct cm_cell *cm_cell_find(struct cm *cm, const char *name, size_t len)
{
	for (size_t i = 0; i < atomic_load(&cm->cell_n); i++)
		if (strlen(cm->cells[i].name) == len && strncasecmp(cm->cells[i].name, name, len) == 0)
			return &cm->cells[i];
	return NULL;
}

static uint64_t cell_number(const char *name)
{
	uint64_t h = UINT64_C(14695981039346656037);
	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * UINT64_C(1099511628211);
	return h;
}

static bool good_name(const char *name)
{
	size_t n = strlen(name);
	if (n == 0 || n >= RX_NAME_MAX || name[0] == '.' || name[0] == '-')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr(".-_", *name))
			return false;
	return true;
}

/* One more, not in sight yet: the caller raises cell_n. */
static afs_err cell_make(struct cm *cm, size_t i, const struct client_cell *in)
{
	struct cm_cell *cell = &cm->cells[i];
	size_t vl_n = MIN(in->vl_count, ARRAY_SIZE(cell->vl_rank));
	*cell = (struct cm_cell){.number = cell_number(in->name), .index = (unsigned)i};
	memcpy(cell->name, in->name, strlen(in->name));
	cell->vl = mem_new_array(vl_n, struct rx_addr);
	cell->vl_conns = mem_new_array(vl_n, struct rpc_conn *);
	cell->anonymous = cm_ident_new(cm, cell, (uid_t)-1);
	if (!cell->vl || !cell->vl_conns || !cell->anonymous)
		return AFS_ENOMEM;
	memcpy(cell->vl, in->vl, vl_n * sizeof(*in->vl));
	cell->vl_n = vl_n;
	return AFS_OK;
}

afs_err cm_cells_new(struct cm *cm, const struct client_config *config)
{
	if (!config->cell_count)
		return log_error(AFS_ECONFIG, "cm.config.no_cell: a client needs a local cell");
	cm->cells = mem_new_array(CM_CELLS_MAX, struct cm_cell);
	if (!cm->cells)
		return AFS_ENOMEM;
	for (size_t i = 0; i < config->cell_count && i < CM_CELLS_MAX; i++) {
		const struct client_cell *in = &config->cells[i];
		if (!good_name(in->name))
			return log_error(AFS_ECONFIG, "cm.config.bad_cell name=%s", LOG_SAFE(in->name));
		if (!in->vl_count)
			return log_error(AFS_ECONFIG, "cm.config.no_vl_server cell=%s", in->name);
		cm->cell_n = i + 1;
		TRY(cell_make(cm, i, in));
	}
	return AFS_OK;
}

/* --- the dynamic root ------------------------------------------------------------------------------------------ */

/* A vnode that no server has: volume 0 of the local cell, always fresh. */
static afs_err made_up(
	struct cm *cm, uint32_t vnode, uint32_t type, uint32_t mode, struct cm_vnode **out)
{
	struct cm_vnode *v;
	TRY(cm_vnode_get(cm, &cm->cells[0], &(struct AFSFid){0, vnode, 1}, &v));
	v->st = (struct AFSFetchStatus){.InterfaceVersion = 1,
		.FileType = type,
		.LinkCount = type == AFS_DIR ? 2 : 1,
		.UnixModeBits = mode,
		.AnonymousAccess = ACL_READ | ACL_LOOKUP,
		.CallerAccess = ACL_READ | ACL_LOOKUP,
		.ParentVnode = 1,
		.ParentUnique = 1,
		.ClientModTime = cm_wall_sec(cm),
		.ServerModTime = cm_wall_sec(cm)};
	v->has_status = true;
	v->promise = FOREVER;
	*out = v;
	return AFS_OK;
}

/* Name and link into the dynamic root. */
static afs_err show(struct cm *cm, const char *name, uint32_t vnode)
{
	struct cm_vnode *root = cm->root;
	mtx_lock(&root->lock);
	afs_err err = cm_dir_own(&root->dir);
	if (!err)
		err = cm_dir_add(root->dir, name, strlen(name), vnode, 1);
	mtx_unlock(&root->lock);
	cm_event(root, CM_EV_NAMES | CM_EV_ATTR);
	return err;
}

static afs_err cell_show(struct cm *cm, size_t i)
{
	for (size_t rw = 0; rw < 2; rw++) {
		const char *cell = cm->cells[i].name;
		size_t top = i * 2 + rw;
		char name[RX_NAME_MAX + 1];
		snprintf(name, sizeof(name), "%s%s", rw ? "." : "", cell);
		uint32_t vnode = (uint32_t)(top + 1) * 2;
		TRY(made_up(cm, vnode, AFS_SYMLINK, 0644, &cm->tops[top]));
		cm->tops[top]->target = mem_printf("%c%s:root.cell.", rw ? '%' : '#', cell);
		if (!cm->tops[top]->target)
			return AFS_ENOMEM;
		cm->tops[top]->st.Length = (uint32_t)strlen(cm->tops[top]->target);
		TRY(show(cm, name, vnode));
	}
	return AFS_OK;
}

afs_err cm_dynroot_new(struct cm *cm)
{
	TRY(made_up(cm, 1, AFS_DIR, 0755, &cm->root));
	cm->root->vol->type = AFS_VOL_RO;
	cm->root->vol->located = true; /* on no server: nothing about it is ever asked */
	cm->root->dir = cm_dir_new(1, 1);
	cm->tops = mem_new_array(CM_CELLS_MAX * 2 + CM_ALIASES_MAX * 2, struct cm_vnode *);
	if (!cm->root->dir || !cm->tops)
		return AFS_ENOMEM;
	for (size_t i = 0; i < cm->cell_n; i++)
		TRY(cell_show(cm, i));
	return AFS_OK;
}

afs_err client_cell_add(struct client *c, const struct client_cell *in)
{
	struct cm *cm = of(c);
	char name[RX_NAME_MAX];
	if (!good_name(in->name) || !in->vl_count)
		return AFS_EINVAL;
	for (size_t i = 0; i <= strlen(in->name); i++)
		name[i] = (char)tolower((unsigned char)in->name[i]);
	struct client_cell cell = {name, in->vl, in->vl_count};
	afs_err err = AFS_OK;
	bool fresh = false;
	size_t at = 0;
	mtx_lock(&cm->cells_lock);
	struct cm_cell *old = cm_cell_find(cm, name, strlen(name));
	if (old) { /* its first so many servers move; conns of the old ones are let go */
		size_t n = MIN(in->vl_count, old->vl_n);
		memcpy(old->vl, in->vl, n * sizeof(*in->vl));
	} else if (cm->cell_n >= CM_CELLS_MAX) {
		err = AFS_ETOOMANY;
	} else {
		at = cm->cell_n;
		err = cell_make(cm, at, &cell);
		if (!err) {
			atomic_fetch_add(&cm->cell_n, 1);
			fresh = true;
		}
	}
	mtx_unlock(&cm->cells_lock);
	if (fresh)
		err = cell_show(cm, at);
	if (!err && fresh)
		log_info("cm.cell.added cell=%s vl=%zu", name, in->vl_count);
	return err;
}

afs_err client_alias_add(struct client *c, const char *alias, const char *name)
{
	struct cm *cm = of(c);
	struct cm_cell *cell = cm_cell_find(cm, name, strlen(name));
	if (!good_name(alias))
		return AFS_EINVAL;
	if (!cell)
		return AFS_ENOENT;
	mtx_lock(&cm->cells_lock);
	afs_err err = cm_cell_find(cm, alias, strlen(alias)) ? AFS_EEXIST : AFS_OK;
	for (size_t i = 0; i < cm->alias_n; i++)
		if (strcasecmp(cm->aliases[i].name, alias) == 0)
			err = AFS_EEXIST;
	size_t at = cm->alias_n;
	if (!err && at == CM_ALIASES_MAX)
		err = AFS_ETOOMANY;
	if (!err) {
		snprintf(cm->aliases[at].name, sizeof(cm->aliases[at].name), "%s", alias);
		cm->aliases[at].cell = cell;
		cm->alias_n++;
	}
	mtx_unlock(&cm->cells_lock);
	TRY(err);
	for (size_t rw = 0; rw < 2; rw++) {
		char text[RX_NAME_MAX + 1];
		struct cm_vnode **v = &cm->tops[CM_CELLS_MAX * 2 + at * 2 + rw];
		uint32_t vnode = ALIAS_VNODE + (uint32_t)(at * 2 + rw + 1) * 2;
		TRY(made_up(cm, vnode, AFS_SYMLINK, 0755, v));
		(*v)->target = mem_printf("%s%s", rw ? "." : "", cell->name);
		if (!(*v)->target)
			return AFS_ENOMEM;
		(*v)->st.Length = (uint32_t)strlen((*v)->target);
		snprintf(text, sizeof(text), "%s%s", rw ? "." : "", alias);
		TRY(show(cm, text, vnode));
	}
	return AFS_OK;
}

afs_err client_alias_at(struct client *c, size_t index, char alias[RX_NAME_MAX], char cell[RX_NAME_MAX])
{
	struct cm *cm = of(c);
	afs_err err = AFS_ENOENT;
	mtx_lock(&cm->cells_lock);
	if (index < cm->alias_n) {
		memcpy(alias, cm->aliases[index].name, RX_NAME_MAX);
		memcpy(cell, cm->aliases[index].cell->name, RX_NAME_MAX);
		err = AFS_OK;
	}
	mtx_unlock(&cm->cells_lock);
	return err;
}

/* One line of a CellServDB: ">cell  #words" begins a cell, "1.2.3.4 #name" or "[1.2.3.4]" is a server of it. */
static bool take_line(const char *line, size_t n, char cell[RX_NAME_MAX], struct rx_addr *vl, size_t *vl_n)
{
	while (n && (*line == ' ' || *line == '\t'))
		line++, n--;
	while (n && strchr(" \t\r", line[n - 1]))
		n--;
	if (!n || *line == '#')
		return true;
	char word[RX_NAME_MAX];
	bool begins = *line == '>';
	if (begins || *line == '[')
		line++, n--;
	size_t len = 0;
	while (len < n && !strchr(" \t#]", line[len]))
		len++;
	if (!len || len >= sizeof(word) || memchr(line, 0, len))
		return false;
	memcpy(word, line, len);
	word[len] = 0;
	if (begins) {
		memcpy(cell, word, len + 1);
		*vl_n = 0;
		return good_name(word);
	}
	struct in_addr ip;
	if (inet_pton(AF_INET, word, &ip) != 1 || !cell[0])
		return false;
	if (*vl_n < VL_MAX)
		vl[(*vl_n)++] = (struct rx_addr){ntohl(ip.s_addr), VL_PORT};
	return true;
}

afs_err client_cells_load(struct client *c, const char *text, size_t len, unsigned *bad)
{
	char cell[RX_NAME_MAX] = "";
	struct rx_addr vl[VL_MAX];
	size_t vl_n = 0;
	*bad = 0;
	for (size_t at = 0; at <= len;) {
		const char *line = text + at;
		const char *nl = at < len ? memchr(line, '\n', len - at) : NULL;
		size_t n = nl ? (size_t)(nl - line) : len - at;
		bool next = at == len || (n && *line == '>');
		if (next && cell[0] && vl_n && !cm_cell_find(of(c), cell, strlen(cell))) {
			afs_err err = client_cell_add(c, &(struct client_cell){cell, vl, vl_n});
			if (err == AFS_EINVAL)
				++*bad;
			else
				TRY(err);
		}
		if (next)
			cell[0] = 0;
		if (at == len)
			break;
		*bad += !take_line(line, n, cell, vl, &vl_n);
		at += n + (nl != NULL);
	}
	return AFS_OK;
}

/* --- DNS -------------------------------------------------------------------------------------------------------- */

struct found {
	struct rx_addr addr[VL_MAX];
	uint16_t order[VL_MAX];
	size_t n;
};

static void add_host(struct found *f, const char *host, uint16_t port, uint16_t order)
{
	struct addrinfo want = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *list = NULL;
	if (getaddrinfo(host, NULL, &want, &list) != 0)
		return;
	for (struct addrinfo *a = list; a && f->n < VL_MAX; a = a->ai_next) {
		struct sockaddr_in in;
		memcpy(&in, a->ai_addr, sizeof(in));
		size_t at = f->n++; /* by rising priority, in the order of the answer */
		for (; at && f->order[at - 1] > order; at--) {
			f->addr[at] = f->addr[at - 1];
			f->order[at] = f->order[at - 1];
		}
		f->addr[at] = (struct rx_addr){ntohl(in.sin_addr.s_addr), port};
		f->order[at] = order;
	}
	freeaddrinfo(list);
}

static void ask(struct __res_state *res, const char *name, int type, struct found *f)
{
	uint8_t answer[DNS_ANSWER];
	int n = res_nquery(res, name, ns_c_in, type, answer, sizeof(answer));
	ns_msg msg;
	if (n <= 0 || ns_initparse(answer, MIN(n, (int)sizeof(answer)), &msg) < 0)
		return;
	for (int i = 0; i < ns_msg_count(msg, ns_s_an); i++) {
		ns_rr rr;
		char host[NS_MAXDNAME];
		if (ns_parserr(&msg, ns_s_an, i, &rr) < 0 || (int)ns_rr_type(rr) != type)
			continue;
		const uint8_t *p = ns_rr_rdata(rr);
		size_t len = ns_rr_rdlen(rr), fixed = type == ns_t_srv ? 6 : 2;
		if (len <= fixed || dn_expand(ns_msg_base(msg), ns_msg_end(msg), p + fixed, host, sizeof(host)) < 0)
			continue;
		if (type == ns_t_srv)
			add_host(f, host, be16_get(p + 4), be16_get(p));
		else if (be16_get(p) == 1)
			add_host(f, host, VL_PORT, 0);
	}
}

bool cm_cell_discover(struct cm *cm, const char *name)
{
	if (*name == '.')
		name++;
	if (!cm->config.dns || !good_name(name) || !strchr(name, '.'))
		return false;
	mono_ns now = cm_now(cm);
	bool known = false;
	mtx_lock(&cm->cells_lock);
	for (size_t i = 0; i < CM_UNKNOWN_MAX; i++)
		known |= cm->unknown[i].until > now && strcasecmp(cm->unknown[i].name, name) == 0;
	mtx_unlock(&cm->cells_lock);
	if (known || cm_cell_find(cm, name, strlen(name)))
		return false;
	struct found f = {.n = 0};
	struct __res_state res = {0};
	char query[RX_NAME_MAX + 32];
	if (res_ninit(&res) == 0) {
		res.retrans = 2; /* a mistyped name costs no more than this */
		res.retry = 1;
		snprintf(query, sizeof(query), "_afs3-vlserver._udp.%s", name);
		ask(&res, query, ns_t_srv, &f);
		if (!f.n)
			ask(&res, name, ns_t_afsdb, &f);
		res_nclose(&res);
	}
	if (f.n && client_cell_add((struct client *)cm, &(struct client_cell){name, f.addr, f.n}) == AFS_OK)
		return true;
	mtx_lock(&cm->cells_lock);
	unsigned at = cm->unknown_next++ % CM_UNKNOWN_MAX;
	snprintf(cm->unknown[at].name, sizeof(cm->unknown[at].name), "%s", name);
	cm->unknown[at].until = now + UNKNOWN_FOR;
	mtx_unlock(&cm->cells_lock);
	return false;
}
