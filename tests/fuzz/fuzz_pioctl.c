/* SPDX-License-Identifier: BSD-2-Clause
 * Blobs of cache-manager calls: the first byte chooses the call, the rest is its input.  A cache
 * manager that takes every token and has one stands behind. */
#include "cell/base/mem.h"
#include "client/pioctl/pioctl.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint8_t touched; /* what is handed on must be readable */

afs_err client_token_set(struct client *c, uid_t uid, const struct client_token *t)
{
	(void)c, (void)uid;
	for (size_t i = 0; i < t->kad.ticket_len; i++)
		touched ^= t->kad.ticket[i];
	touched ^= (uint8_t)strlen(t->cell);
	return AFS_OK;
}

afs_err client_token_get(struct client *c, uid_t uid, const char *cell, struct arena *a, struct client_token *out)
{
	(void)c, (void)uid, (void)a;
	touched ^= (uint8_t)strlen(cell);
	*out = (struct client_token){.cell = "a.test", .name = "", .kad = {.ticket = (const uint8_t *)"ticket", .ticket_len = 6}};
	return AFS_OK;
}

size_t client_token_list(struct client *c, uid_t uid, struct client_token_info *out, size_t cap)
{
	(void)c, (void)uid;
	if (cap)
		snprintf(out[0].cell, sizeof(out[0].cell), "a.test");
	return 1;
}

afs_err client_token_drop(struct client *c, uid_t uid, const char *cell)
{
	(void)c, (void)uid;
	touched ^= cell ? (uint8_t)strlen(cell) : 0;
	return AFS_OK;
}

afs_err client_cell_at(struct client *c, size_t index, char name[RX_NAME_MAX], uint32_t *ips, size_t cap, size_t *n)
{
	(void)c, (void)ips, (void)cap;
	if (index)
		return AFS_ENOENT;
	snprintf(name, RX_NAME_MAX, "a.test");
	if (n)
		*n = 0;
	return AFS_OK;
}

/* --- a cache manager that does all it is told --- */
static void read_text(const char *s) { touched ^= s ? (uint8_t)strlen(s) : 0; }
static void read_file(const struct client_file *f) { touched ^= (uint8_t)f->fid.Vnode ^ (uint8_t)strlen(f->cell); }
static const char *mount_at(void) { return "/afs"; }
const char *client_mounted_at(struct client *c) { return (void)c, mount_at(); }
afs_err client_path(struct client *c, uid_t u, const char *path, bool follow, struct client_file *out)
{
	(void)c, (void)u, (void)follow;
	read_text(path);
	*out = (struct client_file){.cell = "a.test", .fid = {1, 2, 3}};
	return AFS_OK;
}
afs_err client_acl_get(struct client *c, uid_t u, const struct client_file *f, char **text)
{
	(void)c, (void)u;
	read_file(f);
	*text = mem_strdup("0\n0\n");
	return *text ? AFS_OK : AFS_ENOMEM;
}
afs_err client_acl_set(struct client *c, uid_t u, const struct client_file *f, const char *text)
{
	return (void)c, (void)u, read_file(f), read_text(text), AFS_OK;
}
afs_err client_volume_get(struct client *c, uid_t u, const struct client_file *f, struct client_volume *out)
{
	(void)c, (void)u;
	read_file(f);
	*out = (struct client_volume){.name = "v", .id = 1};
	return AFS_OK;
}
afs_err client_volume_set(struct client *c, uid_t u, const struct client_file *f, const struct client_volume_change *change)
{
	(void)c, (void)u;
	read_file(f);
	read_text(change->name);
	read_text(change->offline_msg);
	read_text(change->motd);
	return AFS_OK;
}
afs_err client_mount_read(struct client *c, uid_t u, const struct client_file *d, const char *name, char **target)
{
	(void)c, (void)u, (void)d;
	read_text(name);
	*target = mem_strdup("#v.");
	return *target ? AFS_OK : AFS_ENOMEM;
}
afs_err client_mount_remove(struct client *c, uid_t u, const struct client_file *d, const char *name)
{
	return (void)c, (void)u, (void)d, read_text(name), AFS_OK;
}
afs_err client_flush_mount(struct client *c, uid_t u, const struct client_file *d, const char *name)
{
	return (void)c, (void)u, (void)d, read_text(name), AFS_OK;
}
afs_err client_lookup(struct client *c, uid_t u, const struct client_file *d, const char *name, struct client_file *out)
{
	return (void)c, (void)u, read_text(name), *out = *d, AFS_OK;
}
afs_err client_whereis(struct client *c, uid_t u, const struct client_file *f, uint32_t *ips, size_t cap, size_t *n)
{
	(void)c, (void)u, (void)f;
	for (*n = 0; *n < cap; ++*n)
		ips[*n] = 1;
	return AFS_OK;
}
afs_err client_examine(struct client *c, uid_t u, const struct client_file *f, struct client_examine *out)
{
	return (void)c, (void)u, (void)f, *out = (struct client_examine){.caller_access = 1}, AFS_OK;
}
afs_err client_flush(struct client *c, const struct client_file *f, bool v) { return (void)c, (void)v, read_file(f), AFS_OK; }
void client_flush_all(struct client *c) { (void)c; }
void client_check_volumes(struct client *c) { (void)c; }
afs_err client_prefetch(struct client *c, uid_t u, const struct client_file *f) { return (void)c, (void)u, read_file(f), AFS_OK; }
afs_err client_cell_add(struct client *c, const struct client_cell *cell)
{
	(void)c;
	read_text(cell->name);
	for (size_t i = 0; i < cell->vl_count; i++)
		touched ^= (uint8_t)cell->vl[i].port;
	return AFS_OK;
}
afs_err client_alias_add(struct client *c, const char *a, const char *b) { return (void)c, read_text(a), read_text(b), AFS_OK; }
afs_err client_alias_at(struct client *c, size_t i, char alias[RX_NAME_MAX], char cell[RX_NAME_MAX])
{
	(void)c;
	strcpy(alias, "a");
	strcpy(cell, "a.test");
	return i ? AFS_ENOENT : AFS_OK;
}
size_t client_servers(struct client *c, bool vl, struct client_server *out, size_t cap)
{
	(void)c, (void)vl;
	for (size_t i = 0; i < cap; i++)
		out[i] = (struct client_server){.ip = (uint32_t)i};
	return cap + 7;
}
void client_server_prefer(struct client *c, bool vl, uint32_t ip, uint16_t rank) { (void)c, (void)vl, touched ^= (uint8_t)(ip ^ rank); }
size_t client_servers_check(struct client *c, const char *cell, bool fast, uint32_t *down, size_t cap)
{
	(void)c, (void)fast;
	read_text(cell);
	for (size_t i = 0; i < cap; i++)
		down[i] = 1;
	return cap;
}
void client_knobs_get(struct client *c, struct client_knobs *out)
{
	(void)c;
	*out = (struct client_knobs){.sysname_n = CLIENT_SYSNAMES};
}
afs_err client_knobs_set(struct client *c, const struct client_knobs *in)
{
	(void)c;
	for (unsigned i = 0; i < in->sysname_n; i++)
		read_text(in->sysname[i]);
	return AFS_OK;
}
afs_err client_cache_resize(struct client *c, uint64_t n) { return (void)c, (void)n, AFS_OK; }
void client_cache_info(struct client *c, struct client_cache_info *out) { (void)c, *out = (struct client_cache_info){0}; }
void client_uuid_new(struct client *c) { (void)c; }
uid_t client_identity_of(struct client *c, uid_t uid, const uint32_t *g, size_t n) { return (void)c, (void)g, (void)n, uid; }
uint32_t client_pag_new(struct client *c, uid_t uid) { return (void)c, (void)uid, 0; }
uid_t client_pag_owner(struct client *c, uint32_t pag) { return (void)c, (void)pag, 0; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	if (size < 2)
		return 0;
	arena_init(&a, 1 << 20);
	/* the first byte: class and who; the second: the number */
	struct pioctl x = {.uid = data[0] & 4 ? 1000 : 0, .who = 1000, .path = data[0] & 8 ? "/afs/x" : NULL,
		.cmd = PIOCTL("VCOV"[data[0] & 3], data[1]), .in = {data + 2, (uint32_t)(size - 2)}, .arena = &a};
	if (pioctl_run(&x) == 0)
		for (uint32_t i = 0; i < x.out.len; i++)
			touched ^= x.out.p[i];
	arena_fini(&a);
	return 0;
}
