/* SPDX-License-Identifier: BSD-2-Clause
 * The file server as a whole: made, served, counted, ended. */
#include "cell/proto/abort.h"
#include "fileserver/fs/fs_handlers.h"

#define RPC_WANT_HANDLERS
#define RPC_PREFIX fs
#define RPC_ROWS "cell/proto/fs.rpc"
#include "rx/xdr/iface_pass.h"

afs_err fs_new_with_wire(
	const struct fileserver_config *config, const struct cb_wire *wire, struct fileserver **out)
{
	if (afs_uuid_is_nil(&config->uuid) || !config->store) {
		wire->free(wire->ctx);
		return AFS_EINVAL;
	}
	struct fileserver *fs = mem_new(struct fileserver);
	if (!fs) {
		wire->free(wire->ctx);
		return AFS_ENOMEM;
	}
	fs->config = *config;
	fs->store = config->store;
	fs->wire = *wire;
	fs->began = clk_wall();
	struct cb_config cb = {
		.people = config->ports.people,
		.wire = *wire,
		.uuid = config->uuid,
		.promises_max = config->callbacks_max,
		.promise_life_s = config->callback_life_s,
		.hosts_max = config->hosts_max,
		.identify_max = config->identify_max,
	};
	afs_err err = cb_new(&cb, &fs->cb);
	if (err == AFS_OK) {
		fs->locks = fs_locks_new();
		if (!fs->locks)
			err = AFS_ENOMEM;
	}
	if (err != AFS_OK) {
		fileserver_free(fs);
		return err;
	}
	*out = fs;
	return AFS_OK;
}

afs_err fileserver_new(const struct fileserver_config *config, struct fileserver **out)
{
	struct cb_wire wire;
	TRY(cb_wire_rpc_new(&wire));
	cb_wire_rpc_set_wait(&wire, config->break_wait_ns);
	return fs_new_with_wire(config, &wire, out);
}

void fs_serve(struct fileserver *fs)
{
	atomic_store_explicit(&fs->serving, true, memory_order_release);
}

static void *keep(void *arg)
{
	struct fileserver *fs = arg;
	cb_keep(fs->cb);
	return NULL;
}

afs_err fileserver_start(struct fileserver *fs, struct rpc_port *port)
{
	cb_wire_rpc_set_port(&fs->wire, port);
	if (pthread_create(&fs->keeper, NULL, keep, fs) != 0) {
		cb_wire_rpc_set_port(&fs->wire, NULL);
		return AFS_ENOMEM;
	}
	fs->keeping = true;
	fs_serve(fs);
	return AFS_OK;
}

/* Calls that still run finish without telling anybody more than they can reach. */
void fileserver_stop(struct fileserver *fs)
{
	if (!fs->keeping)
		return;
	atomic_store(&fs->serving, false);
	cb_stop(fs->cb);
	pthread_join(fs->keeper, NULL);
	fs->keeping = false;
	cb_wire_rpc_set_port(&fs->wire, NULL);
}

void fileserver_free(struct fileserver *fs)
{
	if (!fs)
		return;
	fileserver_stop(fs);
	cb_free(fs->cb);
	fs_locks_free(fs->locks);
	mem_free(fs);
}

/* --- the service ------------------------------------------------------------------------------- */

int32_t fs_code_for(struct fileserver *fs, const struct rpc_call *call, afs_err err)
{
	int32_t code = abort_of_fs(err);
	return cb_call_translates(fs->cb, call) ? code : abort_plain_errno(code);
}

static int32_t abort_of(void *ctx, const struct rpc_call *call, afs_err err)
{
	return fs_code_for(ctx, call, err);
}

static bool superuser(void *ctx, const struct rx_caller *caller)
{
	struct fileserver *fs = ctx;
	const struct fs_people_port *people = &fs->config.ports.people;
	return people->superuser(people->ctx, caller);
}

static void done(void *ctx, const struct rpc_call *call, const void *in, afs_err err, int32_t code,
	int64_t took_ns)
{
	struct fileserver *fs = ctx;
	fs_count(fs, calls, 1);
	fs_xstat_call(fs, call->proc, err == AFS_OK ? 0 : code ? code : -1, took_ns);
	if (err != AFS_OK || code)
		fs_count(fs, refused_calls, 1);
	if (fs->config.ports.audit.done)
		fs->config.ports.audit.done(
			fs->config.ports.audit.ctx, call, in, err, code, took_ns);
}

size_t fileserver_services(struct fileserver *fs, struct rpc_service *out, size_t n)
{
	if (n == 0)
		return 0;
	out[0] = (struct rpc_service){
		.iface = &fs_iface,
		.handlers = fs_handlers,
		.ctx = fs,
		.least = fs->config.least,
		.allow_anonymous = fs->config.allow_anonymous,
		.superuser = superuser,
		.done = done,
		.abort_of = abort_of,
	};
	return 1;
}

void fileserver_volume_changed(struct fileserver *fs, afs_volid volume)
{
	cb_break_volume(fs->cb, volume);
}

void fileserver_stats(struct fileserver *fs, struct fileserver_stats *out)
{
#define FS_STAT(name, text) out->name = atomic_load_explicit(&fs->count.name, memory_order_relaxed);
#include "fileserver/fs/stats.def"
#undef FS_STAT
	cb_stats(fs->cb, out);
}

size_t fileserver_hosts(struct fileserver *fs, struct fileserver_host *out, size_t n)
{
	return cb_hosts(fs->cb, clk_mono(), out, n);
}
