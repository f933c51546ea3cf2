/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/fuse/rig.h"

#include "cell/base/log.h"
#include "dbserver/dbserver.h"
#include "fileserver/fileserver.h"
#include "rx/io/port.h"
#include "tests/lib/fake_clients.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct rig_parts {
	struct rig_config config;
	struct rx_buf_pool *pool;
	struct rpc_workers *workers, *cb_workers;
	struct vs_store *store;
	struct vs_partition *part;
	struct fileserver *fs;
	struct vl *vl;
	struct rpc_port *fs_port, *vl_port, *cb_ports[RIG_CLIENTS];
	uint8_t uuid[16];
	struct keys_realms realms;
};

bool rig_isolate(void)
{
	if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) != 0 ||
		unshare(CLONE_NEWNET | CLONE_NEWNS) < 0)
		return false;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	bool up = s >= 0 && ioctl(s, SIOCSIFFLAGS, &ifr) == 0;
	close(s);
	return up;
}

static mono_ns now(void *ctx) { return (void)ctx, clk_mono(); }
static wall_ns wall(void *ctx) { return (void)ctx, clk_wall(); }
static void afs_name(void *ctx, const struct rx_caller *caller, struct keys_name *out)
{
	(void)ctx, (void)caller;
	*out = (struct keys_name){0};
}
static bool nobody(void *ctx, const struct rx_caller *caller)
{
	return (void)ctx, (void)caller, false;
}

void rig_volume(struct rig *r, uint32_t id, const char *name)
{
	struct rig_parts *p = r->parts;
	CLEANUP(heap) struct vs_header *h = mem_new(struct vs_header);
	struct vs_volume *v;
	h->id = h->parent = id;
	h->creation = SEC(1700000000);
	strcpy(h->name, name);
	assert_ok(vs_volume_create(p->part, h, true, clk_wall(), &v));
	h->in_service = h->blessed = true;
	assert_ok(vs_volume_set_header(
		v, h, VS_H_IN_SERVICE | VS_H_BLESSED | VS_H_DESTROY_ME | VS_H_QUOTA));
	struct vs_acl acl = {1, 0, {{AFS_ANYUSER, ACL_ALL}}};
	struct vs_who who = {clk_wall(), 1};
	struct vs_status st;
	assert_ok(vs_set_acl(v, (struct vs_fid){1, 1}, &acl, &who, &st));
	vs_volume_unref(v);
	struct nvldbentry e = {.nServers = 1,
		.serverNumber = {RIG_IP},
		.serverFlags = {VLSF_RW},
		.volumeId = {id},
		.flags = VLF_RW_EXISTS};
	strcpy(e.name, name);
	assert_ok(vl_volume_create(p->vl, &e));
}

struct vs_store *rig_store(struct rig *r) { return r->parts->store; }

static struct rpc_port *open_port(struct rig_parts *p, const char *name, uint16_t port,
	struct rpc_service *services, size_t n, struct rpc_workers *workers)
{
	struct rpc_port_config config = {.name = name,
		.ip = RIG_IP,
		.port = port,
		.services = services,
		.service_count = n,
		.workers = workers,
		.pool = p->pool,
		.max_datagram = p->config.slow_path ? 1444 : 0};
	struct rpc_port *out;
	assert_ok(rpc_port_open(&config, &out));
	return out;
}

static void server_start(struct rig_parts *p)
{
	struct fileserver_config config = {
		.store = p->store, .ports = {.people = fake_people()}, .allow_anonymous = true};
	config.uuid = afs_uuid_from_bytes(p->uuid);
	assert_ok(fileserver_new(&config, &p->fs));
	struct rpc_service services[2];
	p->fs_port = open_port(
		p, "fs", FS_PORT, services, fileserver_services(p->fs, services, 2), p->workers);
	assert_ok(fileserver_start(p->fs, p->fs_port));
}

static void server_stop(struct rig_parts *p)
{
	fileserver_stop(p->fs);
	rpc_port_close(TAKE(p->fs_port));
	fileserver_free(p->fs);
}

void rig_server_restart(struct rig *r)
{
	server_stop(r->parts);
	server_start(r->parts);
}

void rig_server_stop(struct rig *r) { server_stop(r->parts); }
void rig_server_start(struct rig *r) { server_start(r->parts); }

void rig_quota(struct rig *r, uint64_t more_kib)
{
	CLEANUP(heap) struct vs_header *h = mem_new(struct vs_header);
	struct vs_volume *v;
	assert_ok(vs_volume_find(r->parts->store, NULL, 0x20000001, &v));
	assert_ok(vs_volume_header(v, h));
	h->quota_kib = more_kib ? h->used_kib + more_kib : 0;
	assert_ok(vs_volume_set_header(v, h, VS_H_QUOTA));
	vs_volume_unref(v);
}

void rig_claim(struct rig *r, int claim)
{
	struct vs_volume *v;
	assert_ok(vs_volume_find(r->parts->store, NULL, 0x20000001, &v));
	assert_ok(vs_volume_claim(v, (enum vs_claim)claim));
	vs_volume_unref(v);
}

static struct rpc_port *direct(void *ctx, struct rx_addr server, struct rx_addr *from)
{
	struct rig_parts *p = ctx;
	if (server.port != FS_PORT || !p->fs_port)
		return NULL;
	*from = (struct rx_addr){RIG_IP, CB_PORT};
	return rpc_port_ref(p->fs_port);
}
/* Each client calls from its own port. */
static struct rpc_port *direct2(void *ctx, struct rx_addr server, struct rx_addr *from)
{
	struct rpc_port *port = direct(ctx, server, from);
	from->port += 100;
	return port;
}

void rig_client_start(struct rig *r, unsigned i)
{
	struct rig_parts *p = r->parts;
	CLEANUP(str) char *cache = mem_printf("%s/cache%u", r->dir, i + 1);
	struct rx_addr vl = {RIG_IP, VL_PORT};
	struct client_cell cell = {RIG_CELL, &vl, 1};
	struct client_config config = {.cells = &cell,
		.cell_count = 1,
		.cache_dir = cache,
		.cache_bytes = p->config.cache_bytes ? p->config.cache_bytes : UINT64_C(1) << 30,
		.level = RX_LEVEL_CRYPT,
		.level_here = RX_LEVEL_CRYPT,
		.dead_ns = p->config.dead_ns};
	struct client_ports ports = {.ctx = p, .now = now, .wall = wall,
		.direct = !p->config.direct || i > 1 ? NULL : i ? direct2 : direct};
	assert_ok(client_new(&config, &ports, &r->clients[i]));
	struct rpc_service service;
	client_service(r->clients[i], &service);
	p->cb_ports[i] =
		open_port(p, "client", (uint16_t)(CB_PORT + 100 * i), &service, 1, p->cb_workers);
	assert_ok(client_start(r->clients[i], p->cb_ports[i]));
	if (!p->config.no_mount) {
		mkdir(r->mounts[i], 0755);
		assert_ok(client_mount(r->clients[i], r->mounts[i]));
	}
}

void rig_client_stop(struct rig *r, unsigned i)
{
	if (!r->clients[i])
		return;
	client_stop(r->clients[i]);
	rpc_port_close(r->parts->cb_ports[i]);
	client_free(r->clients[i]);
	r->clients[i] = NULL;
}

struct rig *rig_start(const struct rig_config *config)
{
	struct rig *r = mem_new(struct rig);
	struct rig_parts *p = r->parts = mem_new(struct rig_parts);
	p->config = *config;
	r->own_dir = !config->dir;
	r->dir = config->dir ? mem_strdup(config->dir) : test_scratch();
	mkdir(r->dir, 0755);
	chmod(r->dir, 0755);
	p->pool = rx_buf_pool_new(128 << 20);
	p->workers = rpc_workers_new("fs", 32);
	p->cb_workers = rpc_workers_new("cb", 8);
	assert_ok(vs_store_open(&(struct vs_config){0}, &p->store));
	CLEANUP(str) char *path = mem_printf("%s/a", r->dir);
	assert_ok(vs_partition_attach(p->store, "a", path, &p->part));
	struct afsUUID uuid = afs_uuid_random();
	afs_uuid_to_bytes(&uuid, p->uuid);

	CLEANUP(str) char *db = mem_printf("%s/cell.db", r->dir);
	p->realms.cell = RIG_CELL;
	struct dbserver_config dc = {.path = db,
		.realms = &p->realms,
		.ip = RIG_IP,
		.ports = {.afs_name = afs_name, .superuser = nobody}};
	assert_ok(vl_open(&dc, &p->vl));
	assert_ok(vl_server_register(p->vl, p->uuid, &(uint32_t){RIG_IP}, 1));
	struct rpc_service services[DBSERVER_SERVICES];
	p->vl_port =
		open_port(p, "vl", VL_PORT, services, vl_services(p->vl, services), p->workers);
	rig_volume(r, 0x20000001, "root.cell");
	server_start(p);
	for (unsigned i = 0; i < RIG_CLIENTS; i++)
		r->mounts[i] = mem_printf("%s/m%u", r->dir, i + 1);
	for (unsigned i = 0; i < config->clients; i++)
		rig_client_start(r, i);
	return r;
}

void rig_stop(struct rig *r)
{
	struct rig_parts *p = r->parts;
	for (unsigned i = 0; i < RIG_CLIENTS; i++) {
		rig_client_stop(r, i);
		mem_free(r->mounts[i]);
	}
	server_stop(p);
	rpc_port_close(p->vl_port);
	vl_close(p->vl);
	vs_store_close(p->store);
	rpc_workers_free(p->workers);
	rpc_workers_free(p->cb_workers);
	rx_buf_pool_free(p->pool);
	if (r->own_dir)
		test_scratch_free(r->dir);
	else
		mem_free(r->dir);
	mem_free(p);
	mem_free(r);
}
