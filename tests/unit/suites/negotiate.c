/* SPDX-License-Identifier: BSD-2-Clause
 *
 * negotiate CASE ADDRESS [CELL]: one call of GSSNegotiate that no client makes, for tests/unit/cell/rxgk.sh; with
 * the tickets in KRB5CCNAME.  Status 0: it got no token, in the way that it should. */
#include "cell/keys/keys.h"
#include "cell/proto/gk.h"
#include "rx/io/port.h"

#include <arpa/inet.h>
#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <stdio.h>
#include <string.h>

#define RPC_WANT_STUBS
#define RPC_PREFIX gk
#define RPC_ROWS "cell/proto/gk.rpc"
#include "rx/xdr/iface_pass.h"

enum { PT_PORT_ = 7002 };

/* A right GSS token for a service; aborts the test when there is none. */
static gss_buffer_desc token_for(const char *service)
{
	gss_buffer_desc name = {strlen(service), (void *)(uintptr_t)service}, out = GSS_C_EMPTY_BUFFER;
	gss_name_t to = GSS_C_NO_NAME;
	gss_ctx_id_t ctx = GSS_C_NO_CONTEXT;
	OM_uint32 minor;
	if (GSS_ERROR(gss_import_name(&minor, &name, (gss_OID)(uintptr_t)GSS_KRB5_NT_PRINCIPAL_NAME, &to)) ||
		GSS_ERROR(gss_init_sec_context(&minor, GSS_C_NO_CREDENTIAL, &ctx, to, (gss_OID)(uintptr_t)gss_mech_krb5,
			GSS_C_MUTUAL_FLAG | GSS_C_CONF_FLAG | GSS_C_INTEG_FLAG, 0, GSS_C_NO_CHANNEL_BINDINGS, GSS_C_NO_BUFFER, NULL, &out, NULL, NULL))) {
		fprintf(stderr, "no GSS token for %s\n", service);
		exit(98);
	}
	return out;
}

int main(int argc, char **argv)
{
	static uint8_t junk[GK_TOKEN_MAX + 4];
	struct in_addr ip;
	char service[128] = "";
	if (argc < 3 || inet_pton(AF_INET, argv[2], &ip) != 1)
		return 99;
	const char *what = argv[1];
	int32_t etypes[] = {18}, level[] = {RX_LEVEL_CRYPT};
	uint8_t nonce[20] = {1};
	struct gk_gss_negotiate_in in = {.params = {.enctypes = {etypes, 1}, .levels = {level, 1}, .client_nonce = {nonce, sizeof(nonce)}}};
	memset(junk, 0x60, sizeof(junk));
	in.input_token = (struct xdr_bytes){junk, 200};
	if (argc > 3) {
		snprintf(service, sizeof(service), strcmp(what, "other") == 0 ? "afs/%s" : "afs-rxgk/_afs.%s", argv[3]);
		const gss_buffer_desc t = token_for(service);
		in.input_token = (struct xdr_bytes){t.value, (uint32_t)t.length};
	}
	bool refused = false; /* the call itself fails */
	if (strcmp(what, "empty") == 0)
		in.input_token.len = 0;
	if (strcmp(what, "oversize") == 0)
		in.input_token.len = sizeof(junk), refused = true;
	if (strcmp(what, "cut") == 0)
		in.input_token.len -= 20;
	if (strcmp(what, "etypes") == 0)
		etypes[0] = 23, refused = true;
	if (strcmp(what, "second") == 0)
		in.opaque_in = (struct xdr_bytes){junk, 8}, refused = true;
	struct rx_buf_pool *pool = rx_buf_pool_new(1 << 20);
	struct rpc_port_config pc = {.name = "test", .pool = pool};
	struct rpc_port *port;
	struct rpc_conn *conn;
	struct rpc_conn_config cc = {.peer = {ntohl(ip.s_addr), PT_PORT_}, .iface = &gk_iface, .dead_ns = SEC(60)};
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, 64 << 10);
	struct rpc_result res = {.arena = &arena};
	struct gk_gss_negotiate_out out = {};
	if (rpc_port_open(&pc, &port) != AFS_OK || rpc_conn_new(port, &cc, &conn) != AFS_OK)
		return 97;
	afs_err err = gk_call_gss_negotiate(conn, &in, &out, &res);
	printf("%s: code %d, gss_major %08x, info %u\n", afs_err_text(err), res.code, out.gss_major, out.rxgk_info.len);
	rpc_conn_unref(conn);
	rpc_port_close(port);
	rx_buf_pool_free(pool);
	if (refused)
		return err == AFS_OK || err == AFS_EDEAD || err == AFS_ETIMEDOUT;
	return err != AFS_OK || out.gss_major == GSS_S_COMPLETE || out.rxgk_info.len;
}
