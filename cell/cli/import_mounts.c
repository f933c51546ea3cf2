/* SPDX-License-Identifier: BSD-2-Clause
 *
 * import: where volumes are mounted.  A cache manager of its own, in memory and without a mount, reads the
 * directories that the caller may read; breadth first, so that the shortest path to a volume is its place.  A
 * volume is entered once, and what is read is bounded. */
#include "cell/cli/import.h"

#include "cell/base/log.h"
#include "client/client.h"
#include "rx/io/port.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { POOL_MAX = 64 << 20, CACHE_BYTES = 64 << 20, WORKERS = 2, DIRS_MAX = 100000, SERVERS_MAX = 16, PATH_MAX_ = 1024 };

struct place {
	struct place *next;
	struct client_file dir;
	unsigned depth;
	char path[]; /* from the cell's root, "" is that itself */
};

struct walk {
	struct import *m;
	struct client *client;
	struct rx_buf_pool *pool;
	struct rpc_workers *workers;
	struct rpc_port *port;
	struct place *first, **last;
	json_t *entered; /* volumes */
	unsigned depth, dirs, unreadable;
};

static mono_ns now(void *ctx) { return (void)ctx, clk_mono(); }
static wall_ns wall(void *ctx) { return (void)ctx, clk_wall(); }

/* --- a cache manager ----------------------------------------------------------------------------- */

static afs_err start(struct walk *w)
{
	const uint32_t *ips;
	struct rx_addr vl[SERVERS_MAX];
	size_t n = MIN(admin_db_servers(w->m->a, &ips), (size_t)SERVERS_MAX);
	for (size_t i = 0; i < n; i++)
		vl[i] = (struct rx_addr){ips[i], admin_port(w->m->a, ADMIN_VL)};
	struct client_cell cell = {admin_cell(w->m->a), vl, n};
	struct client_config config = {.cells = &cell, .cell_count = 1, .cache_bytes = CACHE_BYTES, .level = RX_LEVEL_CRYPT,
		.level_here = RX_LEVEL_CRYPT, .dead_ns = SEC(10), .busy_ns = SEC(5)};
	struct client_ports ports = {.now = now, .wall = wall};
	TRY(client_new(&config, &ports, &w->client));
	struct rpc_service callbacks;
	client_service(w->client, &callbacks);
	w->pool = rx_buf_pool_new(POOL_MAX);
	w->workers = rpc_workers_new("import", WORKERS);
	if (!w->pool || !w->workers)
		return AFS_ENOMEM;
	struct rpc_port_config pc = {.name = "import", .services = &callbacks, .service_count = 1, .workers = w->workers, .pool = w->pool};
	TRY(rpc_port_open(&pc, &w->port));
	TRY(client_start(w->client, w->port));
	const struct rx_token *both = admin_token(w->m->a);
	if (!both)
		return AFS_OK;
	struct client_token token = {.cell = admin_cell(w->m->a), .name = "import", .both = *both};
	return client_token_set(w->client, getuid(), &token);
}

static void walk_cleanup(struct walk *w)
{
	for (struct place *p = w->first, *next; p; p = next) {
		next = p->next;
		mem_free(p);
	}
	json_decref(w->entered);
	if (w->client && w->port)
		client_stop(w->client);
	if (w->port)
		rpc_port_close(w->port);
	if (w->workers)
		rpc_workers_free(w->workers);
	client_free(w->client);
	if (w->pool)
		rx_buf_pool_free(w->pool);
}

/* --- walking --------------------------------------------------------------------------------------- */

static afs_err add(struct walk *w, const char *path, const struct client_file *dir, unsigned depth)
{
	size_t n = strlen(path);
	struct place *p = mem_alloc(1, sizeof(*p) + n + 1);
	if (!p)
		return AFS_ENOMEM;
	memset(p, 0, sizeof(*p));
	p->dir = *dir;
	p->depth = depth;
	memcpy(p->path, path, n + 1);
	*w->last = p;
	w->last = &p->next;
	return AFS_OK;
}

struct target {
	char cell[RX_NAME_MAX], volume[VOLUME_BASE_MAX + 16];
	bool rw;
};

/* "#vol.", "%cell:vol."; false: it is none. */
static bool parse(const char *text, struct target *out)
{
	const char *colon = strchr(text, ':'), *name = colon ? colon + 1 : text + 1;
	size_t n = strlen(name);
	*out = (struct target){.rw = *text == '%'};
	if ((*text != '#' && *text != '%') || (colon && (size_t)(colon - text) > sizeof(out->cell)))
		return false;
	if (colon)
		memcpy(out->cell, text + 1, (size_t)(colon - text) - 1);
	if (n && name[n - 1] == '.')
		n--;
	if (!n || n >= sizeof(out->volume))
		return false;
	memcpy(out->volume, name, n);
	return true;
}

static bool elsewhere(const struct walk *w, const struct target *t) { return *t->cell && strcasecmp(t->cell, admin_cell(w->m->a)) != 0; }

static void keep_mount(struct walk *w, const char *path, const struct target *t)
{
	json_t *volume = import_volume(w->m, t->volume);
	if (elsewhere(w, t)) {
		import_note(w->m, "%s leads to volume %s of the cell %s", path, t->volume, t->cell);
		return;
	}
	if (!volume) {
		import_note(w->m, "%s leads to volume %s, which the location database does not know", path, t->volume);
		return;
	}
	if (!json_object_get(volume, "mount") && !t->rw)
		json_object_set_new(volume, "mount", json_string(path));
	else
		json_array_append_new(json_object_get(w->m->all, "mounts"),
			json_pack("{s:s, s:s, s:b}", "path", path, "volume", t->volume, "rw", (int)t->rw));
}

/* A mount point: kept, and entered when its volume was not. */
static afs_err mount_point(struct walk *w, const char *path, const char *text)
{
	struct target t;
	struct client_file root;
	if (!parse(text, &t)) {
		import_note(w->m, "%s is a mount point that makes no sense", path);
		return AFS_OK;
	}
	keep_mount(w, path, &t);
	if (elsewhere(w, &t) || json_object_get(w->entered, t.volume))
		return AFS_OK;
	json_object_set_new(w->entered, t.volume, json_true());
	CLEANUP(str) char *whole = mem_printf("%s/%s", admin_cell(w->m->a), path);
	if (!whole)
		return AFS_ENOMEM;
	if (client_path(w->client, getuid(), whole, true, &root) != AFS_OK) {
		w->unreadable++;
		return AFS_OK;
	}
	return add(w, path, &root, 0);
}

static bool is_text(const char *name)
{
	json_t *v = json_string(name); /* NULL: no UTF-8, so no name of a configuration */
	json_decref(v);
	return v;
}

static afs_err one_name(void *ctx, const char *name)
{
	struct walk *w = ctx;
	const struct place *at = w->first;
	CLEANUP(str) char *text = NULL;
	char path[PATH_MAX_];
	struct client_file f;
	if (!is_text(name) || snprintf(path, sizeof(path), "%s%s%s", at->path, *at->path ? "/" : "", name) >= (int)sizeof(path))
		return AFS_OK; /* no path of a configuration */
	if (client_lookup(w->client, getuid(), &at->dir, name, &f) != AFS_OK)
		return AFS_OK;
	if (f.fid.Vnode & 1) /* files, links and mount points have even numbers */
		return at->depth + 1 > w->depth ? AFS_OK : add(w, path, &f, at->depth + 1);
	return client_mount_read(w->client, getuid(), &at->dir, name, &text) == AFS_OK ? mount_point(w, path, text) : AFS_OK;
}

afs_err import_mounts(struct import *m, unsigned depth)
{
	CLEANUP(walk) struct walk w = {.m = m, .depth = depth, .entered = json_object()};
	struct client_file root;
	w.last = &w.first;
	log_to(STDERR_FILENO, LOG_ERROR); /* what a cache manager tells is not for this terminal */
	TRY(start(&w));
	TRY(client_path(w.client, getuid(), admin_cell(m->a), true, &root));
	json_object_set_new(w.entered, "root.cell", json_true());
	TRY(add(&w, "", &root, 0));
	while (w.first && w.dirs < DIRS_MAX) {
		struct place *p = w.first;
		w.dirs++;
		if (w.dirs % 32 == 0)
			cli_progress(m->c, "%u directories read: %s", w.dirs, p->path);
		afs_err err = client_names(w.client, getuid(), &p->dir, one_name, &w);
		if (err == AFS_ENOMEM)
			return err;
		w.unreadable += err != AFS_OK;
		w.first = p->next;
		if (!w.first)
			w.last = &w.first;
		mem_free(p);
	}
	if (w.first)
		import_note(m, "more than %d directories: mount points below %s were not looked for", DIRS_MAX, w.first->path);
	if (w.unreadable)
		import_note(m, "%u directories may not be read by you: mount points in them are not known", w.unreadable);
	return AFS_OK;
}
