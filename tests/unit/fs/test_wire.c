/* SPDX-License-Identifier: BSD-2-Clause
 * A file server and two cache managers on the loopback network: real datagrams, threads and clocks. */
#include "cell/proto/abort.h"
#include "cell/proto/fs.h"
#include "fileserver/fileserver.h"
#include "fileserver/store/store.h"
#include "rx/io/port.h"
#include "tests/lib/fake_clients.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RPC_WANT_STUBS
#define RPC_PREFIX fs
#define RPC_ROWS "cell/proto/fs.rpc"
#include "rx/xdr/iface_pass.h"

#define LOCALHOST 0x7f000001u
#define NAME(s)                                                                                    \
	{                                                                                          \
		(s), sizeof(s) - 1                                                                 \
	}

/* --- a small cache manager: a callback service that notes what it hears --------------------------- */

struct cm {
	struct rpc_port *port;
	struct rpc_conn *conn;
	struct afsUUID uuid;
	bool no_uuid; /* as a client that knows 205 only */
	atomic_uint resets, whos, breaks, sleep_ms;
	struct AFSFid last;
};

#define RPC_WANT_HANDLERS
#define RPC_PREFIX cb
#define RPC_ROWS "cell/proto/cb.rpc"
#include "rx/xdr/iface_pass.h"

/* What no file server asks. */
#define NOT_HERE(name)                                                                             \
	afs_err name(struct rpc_call *call, const struct name##_in *in, struct name##_out *out)    \
	{                                                                                          \
		return (void)call, (void)in, (void)out, AFS_EOPCODE;                               \
	}
NOT_HERE(cb_get_lock)
NOT_HERE(cb_get_ce)
NOT_HERE(cb_x_stats_version)
NOT_HERE(cb_get_x_stats)
NOT_HERE(cb_get_server_prefs)
NOT_HERE(cb_get_cell_serv_db)
NOT_HERE(cb_get_local_cell)
NOT_HERE(cb_get_cache_config)
NOT_HERE(cb_get_ce64)
NOT_HERE(cb_get_cell_by_num)

afs_err cb_call_back(
	struct rpc_call *call, const struct cb_call_back_in *in, struct cb_call_back_out *out)
{
	(void)out;
	struct cm *cm = call->service;
	usleep(atomic_load(&cm->sleep_ms) * 1000);
	if (in->Fids.n)
		cm->last = in->Fids.v[0];
	atomic_fetch_add(&cm->breaks, in->Fids.n);
	return AFS_OK;
}
afs_err cb_init_call_back_state(struct rpc_call *call, const struct cb_init_call_back_state_in *in,
	struct cb_init_call_back_state_out *out)
{
	(void)in, (void)out;
	struct cm *cm = call->service;
	atomic_fetch_add(&cm->resets, 1);
	return AFS_OK;
}
afs_err cb_init_call_back_state3(struct rpc_call *call,
	const struct cb_init_call_back_state3_in *in, struct cb_init_call_back_state3_out *out)
{
	(void)in, (void)out;
	struct cm *cm = call->service;
	atomic_fetch_add(&cm->resets, 1);
	return AFS_OK;
}
afs_err cb_probe(struct rpc_call *call, const struct cb_probe_in *in, struct cb_probe_out *out)
{
	(void)call, (void)in, (void)out;
	return AFS_OK;
}
afs_err cb_who_are_you(
	struct rpc_call *call, const struct cb_who_are_you_in *in, struct cb_who_are_you_out *out)
{
	(void)in;
	struct cm *cm = call->service;
	if (cm->no_uuid)
		return rpc_refuse(call, RXGEN_OPCODE);
	out->addr.uuid = cm->uuid;
	return AFS_OK;
}
afs_err cb_probe_uuid(
	struct rpc_call *call, const struct cb_probe_uuid_in *in, struct cb_probe_uuid_out *out)
{
	(void)out;
	struct cm *cm = call->service;
	return afs_uuid_equal(&in->client, &cm->uuid) ? AFS_OK : rpc_refuse(call, CB_WRONG_UUID);
}
afs_err cb_tell_me_about_yourself(struct rpc_call *call,
	const struct cb_tell_me_about_yourself_in *in, struct cb_tell_me_about_yourself_out *out)
{
	(void)in;
	struct cm *cm = call->service;
	atomic_fetch_add(&cm->whos, 1);
	if (cm->no_uuid)
		return rpc_refuse(call, RXGEN_OPCODE);
	static uint32_t caps[] = {CB_CAP_ERRORTRANS};
	out->addr.uuid = cm->uuid;
	out->capabilities.v = caps;
	out->capabilities.n = 1;
	return AFS_OK;
}

/* --- the rig ----------------------------------------------------------------------------------- */

struct net {
	char *dir;
	struct rx_buf_pool *pool;
	struct rpc_workers *fs_workers, *cm_workers;
	struct vs_store *store;
	struct fileserver *fs;
	struct rpc_port *port;
	struct cm cm[2];
	struct arena arena;
};
enum { VOL = 5 };
static const struct AFSFid root = {VOL, 1, 1};

static void cm_open(struct net *n, struct cm *cm)
{
	struct rpc_service service = {
		.iface = &cb_iface, .handlers = cb_handlers, .ctx = cm, .allow_anonymous = true};
	struct rpc_port_config config = {.name = "cm",
		.ip = LOCALHOST,
		.services = &service,
		.service_count = 1,
		.workers = n->cm_workers,
		.pool = n->pool};
	if (afs_uuid_is_nil(&cm->uuid))
		cm->uuid = afs_uuid_random();
	assert_ok(rpc_port_open(&config, &cm->port));
	struct rpc_conn_config to = {.peer = {LOCALHOST, rpc_port_number(n->port)},
		.iface = &fs_iface,
		.dead_ns = SEC(30)};
	assert_ok(rpc_conn_new(cm->port, &to, &cm->conn));
}

static void cm_close(struct cm *cm)
{
	if (!cm->port)
		return;
	rpc_conn_unref(cm->conn);
	rpc_port_close(cm->port);
	cm->port = NULL;
}

static void make_volume(struct vs_partition *part)
{
	CLEANUP(heap) struct vs_header *h = mem_new(struct vs_header);
	struct vs_volume *v;
	h->id = h->parent = VOL;
	strcpy(h->name, "test");
	assert_ok(vs_volume_create(part, h, true, clk_wall(), &v));
	h->in_service = h->blessed = true;
	h->quota_kib = 0;
	assert_ok(vs_volume_set_header(
		v, h, VS_H_IN_SERVICE | VS_H_BLESSED | VS_H_DESTROY_ME | VS_H_QUOTA));
	struct vs_acl acl = {1, 0, {{AFS_ANYUSER, ACL_ALL}}};
	struct vs_who who = {clk_wall(), 1};
	struct vs_status st;
	assert_ok(vs_set_acl(v, (struct vs_fid){1, 1}, &acl, &who, &st));
	vs_volume_unref(v);
}

static struct net *net_new(void)
{
	struct net *n = mem_new(struct net);
	struct vs_partition *part;
	n->dir = test_scratch();
	n->pool = rx_buf_pool_new(64 << 20);
	n->fs_workers = rpc_workers_new("fs", 16);
	n->cm_workers = rpc_workers_new("cm", 4);
	assert_true(n->pool && n->fs_workers && n->cm_workers);
	assert_ok(vs_store_open(&(struct vs_config){0}, &n->store));
	CLEANUP(str) char *path = mem_printf("%s/a", n->dir);
	assert_ok(vs_partition_attach(n->store, "a", path, &part));
	make_volume(part);
	struct fileserver_config config = {.store = n->store,
		.ports = {.people = fake_people()},
		.uuid = afs_uuid_random(),
		.allow_anonymous = true};
	assert_ok(fileserver_new(&config, &n->fs));
	struct rpc_service services[2];
	struct rpc_port_config port = {.name = "fs",
		.ip = LOCALHOST,
		.services = services,
		.service_count = fileserver_services(n->fs, services, 2),
		.workers = n->fs_workers,
		.pool = n->pool};
	assert_ok(rpc_port_open(&port, &n->port));
	assert_ok(fileserver_start(n->fs, n->port));
	arena_init(&n->arena, 1 << 20);
	return n;
}

static void net_free(struct net *n)
{
	for (size_t i = 0; i < 2; i++)
		cm_close(&n->cm[i]);
	fileserver_stop(n->fs);
	rpc_port_close(n->port);
	fileserver_free(n->fs);
	rpc_workers_free(n->fs_workers);
	rpc_workers_free(n->cm_workers);
	vs_store_close(n->store);
	rx_buf_pool_free(n->pool);
	arena_fini(&n->arena);
	test_scratch_free(n->dir);
	mem_free(n);
}

#define CALL(n, i, fn, out, ...)                                                                   \
	fs_call_##fn((n)->cm[i].conn, &(struct fs_##fn##_in)__VA_ARGS__, (out),                    \
		&(struct rpc_result){.arena = &(n)->arena})

static struct AFSFid create(struct net *n, size_t i, const char *name)
{
	struct fs_create_file_out out = {0};
	assert_ok(CALL(n, i, create_file, &out, {.DirFid = root, .Name = XDR_STR_OF(name)}));
	return out.OutFid;
}

static afs_err store(
	struct net *n, size_t i, struct AFSFid fid, const void *p, size_t len, uint32_t *dv)
{
	struct fs_store_data64_in in = {.Fid = fid, .Length = len, .FileLength = len};
	struct fs_store_data64_out out = {0};
	struct rpc_call *call;
	TRY(rpc_begin(n->cm[i].conn, &fs_iface.procs[fs_op_store_data64], &in, &call));
	afs_err err = rpc_write(call, p, len);
	if (err != AFS_OK) {
		rpc_cancel(call);
		return err;
	}
	TRY(rpc_end(call, &out, &(struct rpc_result){0}));
	if (dv)
		*dv = out.OutStatus.DataVersion;
	return AFS_OK;
}

static void fetch_equals(struct net *n, size_t i, struct AFSFid fid, const void *want, size_t len)
{
	struct fs_fetch_data64_in in = {fid, 0, INT64_C(1) << 40};
	struct fs_fetch_data64_out out = {0};
	struct rpc_call *call;
	uint64_t length;
	assert_ok(rpc_begin(n->cm[i].conn, &fs_iface.procs[fs_op_fetch_data64], &in, &call));
	assert_ok(rpc_read_u64(call, &length));
	assert_int_equal(length, len);
	CLEANUP(heap) uint8_t *got = mem_alloc(len, 1);
	assert_ok(rpc_read(call, got, len));
	assert_ok(rpc_end(call, &out, &(struct rpc_result){0}));
	assert_memory_equal(got, want, len);
	assert_int_equal(fs_status_length(&out.OutStatus), len);
}

static bool soon(atomic_uint *count, unsigned want)
{
	for (int i = 0; i < 3000 && atomic_load(count) < want; i++)
		usleep(1000);
	return atomic_load(count) == want;
}

/* --- stories ----------------------------------------------------------------------------------- */

static void three_megabytes_are_written_renamed_and_read_back(void **state)
{
	(void)state;
	struct net *n = net_new();
	cm_open(n, &n->cm[0]);
	enum { BIG = 3 << 20 };
	CLEANUP(heap) uint8_t *bytes = mem_alloc(BIG, 1);
	for (size_t i = 0; i < BIG; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13);

	struct AFSFid f = create(n, 0, "big");
	uint32_t dv;
	assert_ok(store(n, 0, f, bytes, BIG, &dv));
	assert_int_equal(dv, 1);
	struct fs_make_dir_out dir = {0};
	assert_ok(CALL(n, 0, make_dir, &dir, {.DirFid = root, .Name = NAME("d")}));
	struct fs_rename_out moved = {0};
	assert_ok(CALL(n, 0, rename, &moved, {root, NAME("big"), dir.OutFid, NAME("moved")}));
	fetch_equals(n, 0, f, bytes, BIG);

	struct fs_fetch_acl_out acl = {0};
	assert_ok(CALL(n, 0, fetch_acl, &acl, {dir.OutFid}));
	assert_string_equal((const char *)acl.AccessList.p, "1\n0\nsystem:anyuser\t127\n");
	static const char text[] = "2\n0\nsystem:anyuser\t127\nbob\t9\n";
	struct fs_store_acl_out stored = {0};
	assert_ok(CALL(
		n, 0, store_acl, &stored, {dir.OutFid, {(const uint8_t *)text, sizeof(text)}}));
	assert_ok(CALL(n, 0, fetch_acl, &acl, {dir.OutFid}));
	assert_non_null(strstr((const char *)acl.AccessList.p, "bob\t9\n"));
	assert_int_equal(atomic_load(&n->cm[0].whos), 1);
	assert_int_equal(atomic_load(&n->cm[0].resets), 1);
	assert_int_equal(atomic_load(&n->cm[0].breaks), 0);
	net_free(n);
}

static void what_one_writes_breaks_the_others_promise_before_it_is_acknowledged(void **state)
{
	(void)state;
	struct net *n = net_new();
	cm_open(n, &n->cm[0]);
	cm_open(n, &n->cm[1]);
	struct AFSFid f = create(n, 0, "f");
	atomic_store(&n->cm[1].sleep_ms, 50);
	for (uint32_t round = 1; round <= 3; round++) {
		struct fs_fetch_status_out st = {0};
		assert_ok(CALL(n, 1, fetch_status, &st, {f}));
		assert_int_equal(st.CallBack.CallBackType, CB_SHARED);
		assert_int_equal(st.OutStatus.DataVersion, round - 1);
		assert_ok(store(n, 0, f, "new", 3, NULL));
		assert_int_equal(atomic_load(&n->cm[1].breaks), round);
		assert_true(fid_equal(&n->cm[1].last, &f));
	}
	fetch_equals(n, 1, f, "new", 3);
	assert_int_equal(atomic_load(&n->cm[0].breaks), 0);
	net_free(n);
}

static void a_whole_volume_is_broken_soon(void **state)
{
	(void)state;
	struct net *n = net_new();
	cm_open(n, &n->cm[0]);
	create(n, 0, "f");
	fileserver_volume_changed(n->fs, VOL);
	assert_true(soon(&n->cm[0].breaks, 1));
	assert_int_equal(n->cm[0].last.Volume, VOL);
	assert_int_equal(n->cm[0].last.Vnode, 0);
	net_free(n);
}

static void a_client_without_uuid_is_served_after_the_old_reset(void **state)
{
	(void)state;
	struct net *n = net_new();
	n->cm[0].no_uuid = true;
	cm_open(n, &n->cm[0]);
	create(n, 0, "f");
	assert_int_equal(atomic_load(&n->cm[0].whos), 1);
	assert_int_equal(atomic_load(&n->cm[0].resets), 1);
	net_free(n);
}

/* A client that went away without a word costs the next writer one bounded wait, and nobody else. */
static void a_dead_client_delays_one_change_and_hears_what_it_missed(void **state)
{
	(void)state;
	struct net *n = net_new();
	cm_open(n, &n->cm[0]);
	cm_open(n, &n->cm[1]);
	struct AFSFid f = create(n, 0, "f"), g = create(n, 0, "g");
	struct fs_fetch_status_out st = {0};
	assert_ok(CALL(n, 1, fetch_status, &st, {f}));
	assert_ok(CALL(n, 1, fetch_status, &st, {g}));
	cm_close(&n->cm[1]);

	mono_ns start = clk_mono();
	assert_ok(store(n, 0, f, "1", 1, NULL));
	int64_t first = clk_mono() - start;
	start = clk_mono();
	assert_ok(store(n, 0, g, "1", 1, NULL));
	int64_t second = clk_mono() - start;
	assert_true(first < SEC(13));
	assert_true(second < SEC(1));

	/* the same client again, from another port: a move, so its missed breaks are delivered */
	cm_open(n, &n->cm[1]);
	assert_ok(CALL(n, 1, fetch_status, &st, {f}));
	assert_int_equal(atomic_load(&n->cm[1].breaks), 2);
	assert_int_equal(st.OutStatus.DataVersion, 1);
	struct fileserver_stats s;
	fileserver_stats(n->fs, &s);
	assert_int_equal(s.hosts_down, 0);
	assert_int_equal(s.hosts_moved, 1);
	net_free(n);
}

struct worker {
	pthread_t thread;
	struct net *n;
	size_t i;
	unsigned done;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	for (unsigned k = 0; k < 40; k++) {
		char name[40];
		snprintf(name, sizeof(name), "w%zu-%u", (size_t)(uintptr_t)w, k);
		struct AFSFid f = create(w->n, w->i, name);
		if (store(w->n, w->i, f, name, strlen(name), NULL) != AFS_OK)
			break;
		struct fs_fetch_status_out st = {0};
		struct rpc_result res = {0};
		if (fs_call_fetch_status(w->n->cm[w->i].conn, &(struct fs_fetch_status_in){root},
			    &st, &res) != AFS_OK)
			break;
		struct fs_remove_file_out gone = {0};
		if (fs_call_remove_file(w->n->cm[w->i].conn,
			    &(struct fs_remove_file_in){root, XDR_STR_OF(name)}, &gone,
			    &res) != AFS_OK)
			break;
		w->done++;
	}
	return NULL;
}

/* Two clients with three threads each change one directory that both watch. */
static void many_changes_from_two_sides_all_end(void **state)
{
	(void)state;
	struct net *n = net_new();
	cm_open(n, &n->cm[0]);
	cm_open(n, &n->cm[1]);
	struct worker w[6];
	for (size_t i = 0; i < 6; i++) {
		w[i] = (struct worker){.n = n, .i = i % 2};
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (size_t i = 0; i < 6; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].done, 40);
	}
	assert_true(atomic_load(&n->cm[0].breaks) > 0);
	assert_true(atomic_load(&n->cm[1].breaks) > 0);
	struct fileserver_stats s;
	fileserver_stats(n->fs, &s);
	assert_int_equal(s.hosts_down, 0);
	net_free(n);
}

TEST_MAIN(T(three_megabytes_are_written_renamed_and_read_back),
	T(what_one_writes_breaks_the_others_promise_before_it_is_acknowledged),
	T(a_whole_volume_is_broken_soon), T(a_client_without_uuid_is_served_after_the_old_reset),
	T(a_dead_client_delays_one_change_and_hears_what_it_missed),
	T(many_changes_from_two_sides_all_end))
