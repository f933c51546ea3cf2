/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/fake_clients.h"

#include "tests/lib/test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- clients ----------------------------------------------------------------------------------- */

void fake_world_init(struct fake_world *w)
{
	*w = (struct fake_world){0};
	pthread_mutex_init(&w->lock, NULL);
}

void fake_world_fini(struct fake_world *w)
{
	buf_fini(&w->diary);
	pthread_mutex_destroy(&w->lock);
}

struct fake_client *fake_client_add(struct fake_world *w, uint32_t ip, uint16_t port, uint8_t uuid)
{
	pthread_mutex_lock(&w->lock);
	struct fake_client *c = &w->clients[w->n++];
	pthread_mutex_unlock(&w->lock);
	*c = (struct fake_client){.addr = {ip, port}, .caps = CB_CAP_ERRORTRANS};
	memset(c->uuid, uuid, sizeof(c->uuid));
	return c;
}

char *fake_diary(struct fake_world *w)
{
	pthread_mutex_lock(&w->lock);
	char *text = buf_take(&w->diary);
	pthread_mutex_unlock(&w->lock);
	return text ? text : mem_strdup("");
}

/* Notes the call; the client that answers, or NULL. */
static struct fake_client *visit(struct fake_world *w, struct rx_addr to, const char *what,
	const struct AFSFid *fids, size_t n)
{
	pthread_mutex_lock(&w->lock);
	buf_printf(&w->diary, "%s %u.%u.%u.%u:%u", what, to.ip >> 24, to.ip >> 16 & 255,
		to.ip >> 8 & 255, to.ip & 255, to.port);
	for (size_t i = 0; i < n; i++)
		buf_printf(&w->diary, " %u.%u.%u", fids[i].Volume, fids[i].Vnode, fids[i].Unique);
	buf_putc(&w->diary, '\n');
	struct fake_client *found = NULL;
	for (size_t i = 0; i < w->n; i++)
		if (w->clients[i].addr.ip == to.ip && w->clients[i].addr.port == to.port)
			found = &w->clients[i];
	if (++w->calling > w->most_calling)
		w->most_calling = w->calling;
	pthread_mutex_unlock(&w->lock);
	if (found && found->ms)
		usleep(found->ms * 1000);
	pthread_mutex_lock(&w->lock);
	w->calling--;
	if (found && (found->silent || (found->deaf && strcmp(what, "who") != 0)))
		found = NULL;
	pthread_mutex_unlock(&w->lock);
	return found;
}

static afs_err fake_who(void *ctx, struct rx_addr to, struct cb_answer *out)
{
	struct fake_client *c = visit(ctx, to, "who", NULL, 0);
	if (!c)
		return AFS_EDEAD;
	*out = (struct cb_answer){.has_uuid = !c->no_uuid, .caps = c->no_uuid ? 0 : c->caps};
	if (!c->no_uuid)
		memcpy(out->uuid, c->uuid, sizeof(c->uuid));
	return AFS_OK;
}

static afs_err fake_init(void *ctx, struct rx_addr to, const struct afsUUID *server)
{
	return visit(ctx, to, server ? "init3" : "init", NULL, 0) ? AFS_OK : AFS_EDEAD;
}

static afs_err fake_probe(void *ctx, struct rx_addr to, const uint8_t *uuid)
{
	struct fake_client *c = visit(ctx, to, "probe", NULL, 0);
	if (!c)
		return AFS_EDEAD;
	return !uuid || memcmp(uuid, c->uuid, AFS_UUID_BYTES) == 0 ? AFS_OK : AFS_EABORTED;
}

struct fake_break {
	struct rx_addr to;
	struct AFSFid fids[CB_FIDS_MAX];
	size_t n;
	bool delayed;
};

static afs_err fake_break_begin(void *ctx, struct rx_addr to, const struct AFSFid *fids, size_t n,
	bool delayed, void **call)
{
	(void)ctx;
	struct fake_break *b = mem_new(struct fake_break);
	if (!b)
		return AFS_ENOMEM;
	assert_true(n <= CB_FIDS_MAX);
	b->to = to;
	b->n = n;
	b->delayed = delayed;
	memcpy(b->fids, fids, n * sizeof(*fids));
	*call = b;
	return AFS_OK;
}

static afs_err fake_break_end(void *ctx, void *call)
{
	CLEANUP(heap) struct fake_break *b = call;
	struct fake_client *c = visit(ctx, b->to, b->delayed ? "delayed" : "break", b->fids, b->n);
	if (c && c->on_break)
		c->on_break(c, b->fids, b->n);
	return c ? AFS_OK : AFS_EDEAD;
}

static void fake_via(void *ctx, struct rx_addr from, struct rpc_port *port)
{
	(void)ctx, (void)from, (void)port;
}
static void fake_forget(void *ctx, struct rx_addr to) { (void)ctx, (void)to; }
static void fake_free(void *ctx) { (void)ctx; }

struct cb_wire fake_wire(struct fake_world *w)
{
	return (struct cb_wire){.ctx = w,
		.who = fake_who,
		.init = fake_init,
		.probe = fake_probe,
		.break_begin = fake_break_begin,
		.break_end = fake_break_end,
		.via = fake_via,
		.forget = fake_forget,
		.free = fake_free};
}

/* --- people ------------------------------------------------------------------------------------ */

atomic_uint fake_people_asked;
atomic_bool fake_people_away;
static atomic_uint people_generation;

static const struct {
	const char *name;
	int32_t id;
} known[] = {{"alice", 100}, {"bob", 101}, {"admin", 1}, {"system:anyuser", AFS_ANYUSER},
	{"system:authuser", AFS_AUTHUSER}, {"system:administrators", AFS_ADMINISTRATORS},
	{"anonymous", AFS_ANONYMOUS}};

static afs_err people_id_of(void *ctx, const char *name, int32_t *id)
{
	(void)ctx;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(known[i].name, name) == 0) {
			*id = known[i].id;
			return AFS_OK;
		}
	return AFS_ENOENT;
}

static afs_err people_name_of(void *ctx, int32_t id, char out[AFS_PRNAME_MAX + 1])
{
	(void)ctx;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].id == id) {
			snprintf(out, AFS_PRNAME_MAX + 1, "%s", known[i].name);
			return AFS_OK;
		}
	return AFS_ENOENT;
}

static afs_err people_identify(void *ctx, const struct rx_caller *caller, struct fs_identity *out)
{
	atomic_fetch_add(&fake_people_asked, 1);
	if (atomic_load(&fake_people_away))
		return AFS_EAGAIN;
	int32_t id = AFS_ANONYMOUS;
	if (caller->authenticated && people_id_of(ctx, caller->name, &id) != AFS_OK)
		id = AFS_ANONYMOUS;
	struct fs_cps cps = {mem_new_array(4, int32_t), 0};
	if (!cps.ids)
		return AFS_ENOMEM;
	if (id == 1)
		cps.ids[cps.n++] = AFS_ADMINISTRATORS;
	if (id != AFS_ANONYMOUS)
		cps.ids[cps.n++] = AFS_AUTHUSER;
	cps.ids[cps.n++] = AFS_ANYUSER;
	cps.ids[cps.n++] = id;
	*out = (struct fs_identity){.id = id, .admin = id == 1, .cps = cps};
	return AFS_OK;
}

static afs_err people_host_groups(void *ctx, uint32_t ip, struct fs_cps *out)
{
	(void)ctx, (void)ip;
	*out = (struct fs_cps){0};
	return AFS_OK;
}

static uint64_t people_generation_now(void *ctx)
{
	(void)ctx;
	return atomic_load(&people_generation);
}

void fake_people_changed(void) { atomic_fetch_add(&people_generation, 1); }

static bool people_superuser(void *ctx, const struct rx_caller *caller)
{
	(void)ctx;
	return caller->authenticated && strcmp(caller->name, "admin") == 0;
}

struct fs_people_port fake_people(void)
{
	return (struct fs_people_port){.identify = people_identify,
		.host_groups = people_host_groups,
		.generation = people_generation_now,
		.name_of = people_name_of,
		.id_of = people_id_of,
		.superuser = people_superuser};
}

struct rx_caller fake_caller(const char *name)
{
	struct rx_caller c = {.authenticated = name != NULL};
	if (name)
		snprintf(c.name, sizeof(c.name), "%s", name);
	return c;
}
