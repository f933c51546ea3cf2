/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/fake_rpc.h"

#include "tests/lib/test.h"

#include <string.h>

static struct fake_call *of(const struct rpc_call *call)
{
	return container_of((struct rpc_call *)(uintptr_t)call, struct fake_call, pub);
}

void fake_conn_close(struct fake_conn *c)
{
	void *user = c->user;
	c->user = NULL;
	if (user && c->gone)
		c->gone(user);
}

void fake_call_init(struct fake_call *c, struct fake_conn *conn, struct rx_addr peer,
	const struct rx_caller *caller, void *service, mono_ns now)
{
	static const struct rx_caller anonymous;
	*c = (struct fake_call){.conn = conn};
	arena_init(&c->arena, 1 << 20);
	c->pub = (struct rpc_call){.service = service,
		.caller = caller ? caller : &anonymous,
		.peer = peer,
		.arena = &c->arena,
		.now = now};
}

void fake_call_fini(struct fake_call *c)
{
	arena_fini(&c->arena);
	buf_fini(&c->out);
}

afs_err rpc_refuse(struct rpc_call *call, int32_t code)
{
	of(call)->refused = code;
	return AFS_EABORTED;
}

void *rpc_call_conn_user(struct rpc_call *call) { return of(call)->conn->user; }

void rpc_call_set_conn_user(struct rpc_call *call, void *user, void (*gone)(void *user))
{
	struct fake_conn *c = of(call)->conn;
	fake_conn_close(c);
	c->user = user;
	c->gone = gone;
}

uint64_t rpc_call_conn_key(const struct rpc_call *call) { return of(call)->conn->key; }
struct rpc_port *rpc_call_port(const struct rpc_call *call)
{
	(void)call;
	return NULL;
}
bool rpc_call_is_over(struct rpc_call *call)
{
	(void)call;
	return false;
}

afs_err rpc_read_run(struct rpc_call *call, size_t max, const uint8_t **p, size_t *n)
{
	static const uint8_t zeros[FAKE_RUN];
	struct fake_call *c = of(call);
	*n = MIN(MIN(c->in_len - c->in_at, max), (size_t)FAKE_RUN);
	if (*n) {
		*p = c->in + c->in_at;
		c->in_at += *n;
	} else if (c->in_zeros) {
		*n = MIN(MIN(c->in_zeros, (uint64_t)max), (uint64_t)FAKE_RUN);
		*p = zeros;
		c->in_zeros -= *n;
	} else {
		return c->in_end;
	}
	return AFS_OK;
}

afs_err rpc_write(struct rpc_call *call, const void *p, size_t n)
{
	struct fake_call *c = of(call);
	TRY(c->out_err);
	buf_put(&c->out, p, n);
	return c->out.err;
}

afs_err rpc_write_room(struct rpc_call *call, size_t max, uint8_t **p, size_t *n)
{
	struct fake_call *c = of(call);
	TRY(c->out_err);
	*p = c->room;
	*n = MIN(max, (size_t)FAKE_RUN);
	return AFS_OK;
}

afs_err rpc_write_commit(struct rpc_call *call, size_t n)
{
	assert_true(n <= FAKE_RUN);
	return rpc_write(call, of(call)->room, n);
}

afs_err rpc_write_u32(struct rpc_call *call, uint32_t v)
{
	uint8_t b[4];
	be32_put(b, v);
	return rpc_write(call, b, 4);
}

afs_err rpc_write_u64(struct rpc_call *call, uint64_t v)
{
	TRY(rpc_write_u32(call, (uint32_t)(v >> 32)));
	return rpc_write_u32(call, (uint32_t)v);
}

/* Nobody is called from here. */
afs_err rpc_conn_new(
	struct rpc_port *port, const struct rpc_conn_config *config, struct rpc_conn **out)
{
	(void)port, (void)config, (void)out;
	return AFS_EDEAD;
}
struct rpc_conn *rpc_conn_ref(struct rpc_conn *c) { return c; }
void rpc_conn_unref(struct rpc_conn *c) { (void)c; }
afs_err rpc_invoke(struct rpc_conn *c, const struct rpc_proc *proc, const void *in, void *out,
	struct rpc_result *res)
{
	(void)c, (void)proc, (void)in, (void)out, (void)res;
	return AFS_EDEAD;
}
afs_err rpc_begin(
	struct rpc_conn *c, const struct rpc_proc *proc, const void *in, struct rpc_call **out)
{
	(void)c, (void)proc, (void)in, (void)out;
	return AFS_EDEAD;
}
afs_err rpc_end(struct rpc_call *call, void *out, struct rpc_result *res)
{
	(void)call, (void)out, (void)res;
	return AFS_EDEAD;
}
