/* SPDX-License-Identifier: BSD-2-Clause
 * Arguments and results of every VL, PR, VOTE and DISK call.  data[0] picks the interface, data[1] the row,
 * data[2] arguments or results, data[3] the caller; the rest is decoded.  What decodes prints and encodes
 * again to as many bytes and the same text; arguments are then served by the real handlers, from a
 * database that is thrown away.  With data[0] above 0xf0 the rest is a pattern and a name. */
#include "cell/base/log.h"
#include "dbserver/dbserver.h"
#include "dbserver/vl/vl_store.h"

#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rpc_service services[2 * DBSERVER_SERVICES];
static size_t service_count;
static uint8_t wire[4 << 20];

afs_err rpc_refuse(struct rpc_call *call, int32_t code)
{
	(void)call, (void)code;
	return AFS_EABORTED;
}

static void afs_name(void *ctx, const struct rx_caller *caller, struct keys_name *out)
{
	(void)ctx;
	*out = (struct keys_name){.authenticated = caller->authenticated, .local = !caller->cell[0],
		.localauth = strcmp(caller->name, "afs") == 0};
	snprintf(out->text, sizeof(out->text), "%s%s", caller->name, caller->cell);
}

static bool superuser(void *ctx, const struct rx_caller *caller)
{
	(void)ctx;
	return strcmp(caller->name, "afs") == 0;
}

static char dir[] = "/tmp/afscell-fuzz-XXXXXX", path[64];
static struct vl *vl;
static struct pt *pt;

static void tear_down(void)
{
	static const char *const tails[] = {"", "-wal", "-shm"};
	char side[80];
	vl_close(vl);
	pt_close(pt);
	for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
		snprintf(side, sizeof(side), "%s%s", path, tails[i]);
		unlink(side);
	}
	rmdir(dir);
}

static void set_up(void)
{
	if (service_count)
		return;
	static const struct keys_realms realms = {"test.cell", NULL, 0};
	log_to(-1, LOG_ERROR);
	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/cell.db", dir);
	atexit(tear_down);
	struct dbserver_config config = {.path = path, .sync = DB_SYNC_NONE, .realms = &realms,
		.ports = {.afs_name = afs_name, .superuser = superuser}};
	struct nvldbentry entry = {.name = "root.cell", .nServers = 1, .serverNumber = {0x0a4d0001},
		.serverFlags = {VLSF_RW}, .volumeId = {77, 78, 79}, .flags = VLF_RW_EXISTS};
	int32_t id;
	if (vl_open(&config, &vl) || pt_open(&config, &pt) || pt_user_add(pt, "alice", 0, &id) ||
		pt_group_add(pt, "system:authuser@other", 0, 0, &id) ||
		vl_volume_create(vl, &entry))
		abort();
	service_count = vl_services(vl, services);
	service_count += pt_services(pt, services + service_count);
}

static void serve(const struct rpc_service *s, const struct rpc_proc *p, uint8_t who, const void *in,
	struct arena *a)
{
	static const struct rx_caller callers[] = {{},
		{.authenticated = true, .name = "afs"},
		{.authenticated = true, .name = "alice"},
		{.authenticated = true, .name = "joe", .cell = "@other"}};
	struct rpc_call call = {.service = s->ctx, .iface = s->iface, .proc = p,
		.caller = &callers[who % ARRAY_SIZE(callers)], .arena = a};
	call.superuser = superuser(NULL, call.caller);
	if (p->need == RPC_SUPERUSER && !call.superuser)
		return;
	void *out = arena_alloc(a, 1, p->out_size);
	if (!out)
		return;
	afs_err err = s->handlers[p - s->iface->procs](&call, in, out);
	s->done(s->ctx, &call, in, err, 0, 0);
	if (err)
		return;
	struct xdr_out o = {wire, wire + MIN(sizeof(wire), s->iface->results_max), AFS_OK};
	p->out_put(&o, out);
	if (o.err)
		__builtin_trap(); /* a reply that does not fit its own row */
}

static void fuzz_pattern(const uint8_t *data, size_t size)
{
	struct vl_pattern p;
	size_t n = data[0] % (size + 1);
	if (vl_pattern_init(&p, (const char *)data + 1, MIN(n, size - 1)) == AFS_OK)
		(void)vl_pattern_match(
			&p, (const char *)data + 1 + MIN(n, size - 1), size - 1 - MIN(n, size - 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 5)
		return 0;
	if (data[0] > 0xf0) {
		fuzz_pattern(data + 4, size - 4);
		return 0;
	}
	set_up();
	const struct rpc_service *s = &services[data[0] % service_count];
	const struct rpc_proc *p = &s->iface->procs[data[1] % s->iface->count];
	bool in = data[2] & 1;
	struct arena a, b;
	arena_init(&a, 16 << 20);
	arena_init(&b, 16 << 20);
	struct buf one = {}, two = {};
	void *value = arena_alloc(&a, 1, in ? p->in_size : p->out_size);
	struct xdr_in x = {data + 4, data + size, &a, AFS_OK};
	(in ? p->in_get : p->out_get)(&x, value);
	if (x.err == AFS_OK) {
		(in ? p->in_print : p->out_print)(&one, value);
		struct xdr_out o = {wire, wire + sizeof(wire), AFS_OK};
		(in ? p->in_put : p->out_put)(&o, value);
		if (o.err || o.p - wire != x.p - (data + 4))
			__builtin_trap();
		void *second = arena_alloc(&b, 1, in ? p->in_size : p->out_size);
		struct xdr_in y = {wire, o.p, &b, AFS_OK};
		(in ? p->in_get : p->out_get)(&y, second);
		(in ? p->in_print : p->out_print)(&two, second);
		if (y.err || one.err || two.err || one.len != two.len ||
			memcmp(one.data, two.data, one.len) != 0)
			__builtin_trap();
		if (in)
			serve(s, p, data[3], value, &a);
	}
	buf_fini(&one);
	buf_fini(&two);
	arena_fini(&a);
	arena_fini(&b);
	return 0;
}
