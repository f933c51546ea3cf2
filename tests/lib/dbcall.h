/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A call to a service of the databases without a network: arguments are encoded and decoded again, the row's
 * rule of who may call is applied, the handler runs, results are encoded.  What comes back is what a
 * client would get: a code, and the bytes of the reply.  Include it once per test program: it stands in
 * for rx/rpc. */
#pragma once
#include "tests/lib/test.h"

#include "dbserver/dbserver.h"

#include <stdio.h>

static int32_t dbcall_refused;
afs_err rpc_refuse(struct rpc_call *call, int32_t code)
{
	(void)call;
	dbcall_refused = code;
	return AFS_EABORTED;
}

/* Names of callers as tests write them: NULL nobody, "afs" the cell itself, "alice", "bob@OTHER.REALM". */
static struct rx_caller dbcall_caller(const char *name)
{
	struct rx_caller c = {};
	if (!name)
		return c;
	c.authenticated = true;
	c.sec_class = RX_SEC_RXKAD;
	const char *at = strchr(name, '@');
	size_t n = at ? (size_t)(at - name) : strlen(name);
	memcpy(c.name, name, n);
	if (at)
		strcpy(c.cell, at + 1);
	return c;
}

static void dbcall_afs_name(void *ctx, const struct rx_caller *caller, struct keys_name *out)
{
	(void)ctx;
	*out = (struct keys_name){.authenticated = caller->authenticated,
		.local = !caller->cell[0],
		.localauth = strcmp(caller->name, "afs") == 0 && !caller->cell[0]};
	snprintf(out->text, sizeof(out->text), "%s%s%s", caller->name, caller->cell[0] ? "@" : "",
		caller->cell);
	for (char *p = strchr(out->text, '@'); p && *p; p++)
		*p = *p >= 'A' && *p <= 'Z' ? (char)(*p | 0x20) : *p;
}

/* The cell itself, and `root`. */
static bool dbcall_superuser(void *ctx, const struct rx_caller *caller)
{
	(void)ctx;
	return caller->authenticated && !caller->cell[0] &&
	       (strcmp(caller->name, "afs") == 0 || strcmp(caller->name, "root") == 0);
}

static const struct keys_realms dbcall_realms = {"test.cell", (const char *const[]){"LOCAL.REALM"}, 1};

static struct dbserver_config dbcall_config(const char *path)
{
	return (struct dbserver_config){.path = path,
		.realms = &dbcall_realms,
		.ip = 0x0a510001,
		.ports = {.afs_name = dbcall_afs_name, .superuser = dbcall_superuser}};
}

struct dbcall {
	struct rpc_service services[DBSERVER_SERVICES];
	struct arena arena;
	uint8_t *reply; /* of the last call that succeeded */
	size_t reply_len;
};

static const struct rpc_service *dbcall_service(struct dbcall *t, const struct rpc_iface *iface)
{
	for (size_t i = 0; i < DBSERVER_SERVICES; i++)
		if (t->services[i].iface == iface)
			return &t->services[i];
	fail_msg("no such service");
	return NULL;
}

/* The reply to `body` (arguments as bytes) from `who`: 0 and t->reply, or the abort code.  `out` (may be NULL)
 * gets the results; they live until the next call. */
[[maybe_unused]] static int32_t dbcall_raw(struct dbcall *t, const struct rpc_iface *iface, uint32_t op, const char *who,
	const uint8_t *body, size_t len, void *out)
{
	const struct rpc_service *s = dbcall_service(t, iface);
	const struct rpc_proc *p = rpc_iface_find(iface, op);
	if (!p)
		return -455;
	arena_fini(&t->arena);
	arena_init(&t->arena, 64 << 20);
	struct rx_caller caller = dbcall_caller(who);
	struct rpc_call call = {.service = s->ctx,
		.iface = iface,
		.proc = p,
		.caller = &caller,
		.superuser = s->superuser(s->ctx, &caller),
		.arena = &t->arena};
	afs_err err = AFS_OK;
	dbcall_refused = 0;
	void *in = arena_alloc(&t->arena, 1, p->in_size), *res = arena_alloc(&t->arena, 1, p->out_size);
	if (!in || !res)
		return s->iface->abort_of(AFS_ENOMEM);
	struct xdr_in x = {body, body + len, &t->arena, AFS_OK};
	p->in_get(&x, in);
	if (x.err)
		return x.err == AFS_ENOMEM ? iface->abort_of(AFS_ENOMEM) : -453;
	if (p->need == RPC_SUPERUSER && !call.superuser)
		err = AFS_EPERM;
	else
		err = s->handlers[p - iface->procs](&call, in, res);
	int32_t code = err == AFS_OK	  ? 0
		       : err == AFS_EABORTED ? dbcall_refused
					      : iface->abort_of(err);
	if (s->done)
		s->done(s->ctx, &call, in, err, code, 0);
	if (code)
		return code;
	size_t cap = iface->results_max;
	free(t->reply);
	t->reply = malloc(cap);
	struct xdr_out o = {t->reply, t->reply + cap, AFS_OK};
	p->out_put(&o, res);
	assert_ok(o.err);
	t->reply_len = (size_t)(o.p - t->reply);
	if (out) {
		/* as a client would read it */
		struct xdr_in back = {t->reply, o.p, &t->arena, AFS_OK};
		memset(out, 0, p->out_size);
		p->out_get(&back, out);
		if (back.err == AFS_ENOMEM)
			return iface->abort_of(AFS_ENOMEM);
		assert_ok(back.err);
		assert_ptr_equal(back.p, back.end);
	}
	return 0;
}

[[maybe_unused]] static int32_t dbcall(struct dbcall *t, const struct rpc_iface *iface, uint32_t op, const char *who,
	const void *in, void *out)
{
	static uint8_t body[512 << 10];
	const struct rpc_proc *p = rpc_iface_find(iface, op);
	assert_non_null(p);
	struct xdr_out x = {body, body + sizeof(body), AFS_OK};
	p->in_put(&x, in);
	assert_ok(x.err);
	return dbcall_raw(t, iface, op, who, body, (size_t)(x.p - body), out);
}

static void dbcall_fini(struct dbcall *t)
{
	arena_fini(&t->arena);
	free(t->reply);
	*t = (struct dbcall){};
}
