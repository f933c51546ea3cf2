/* SPDX-License-Identifier: BSD-2-Clause
 *
 * aklog, tokens, unlog.  aklog runs with the user's Kerberos tickets: it gets the service ticket, and
 * hands the token to the cache manager, which keeps it for the user at the other end of the socket. */
#include "cell/cli/cli.h"

#include "cell/base/mem.h"
#include "cell/keys/keys.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Rows of commands.def. */
int cli_aklog(struct cli *c);
int cli_tokens(struct cli *c);
int cli_unlog(struct cli *c);

DEFINE_CLEANUP_PTR(json, json_t, json_decref)

static const char *string(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static char *hex(const uint8_t *p, size_t n)
{
	char *out = mem_alloc(n * 2 + 1, 1);
	for (size_t i = 0; out && i < n; i++)
		sprintf(out + i * 2, "%02x", p[i]);
	return out;
}

static json_t *token_json(const struct keys_token *t)
{
	char name[3 * RX_NAME_MAX];
	snprintf(name, sizeof(name), "%s%s%s@%s", t->name, *t->instance ? "/" : "", t->instance,
		t->realm);
	CLEANUP(str) char *key = hex(t->kad.session_key, sizeof(t->kad.session_key));
	CLEANUP(str) char *ticket = hex(t->kad.ticket, t->kad.ticket_len);
	if (!key || !ticket)
		return NULL;
	json_t *o = json_pack("{s:s, s:s, s:i, s:s, s:s, s:I, s:I}", "cell", t->cell, "name", name,
		"kvno", t->kad.kvno, "key", key, "ticket", ticket, "begins",
		(json_int_t)t->kad.begins, "expires", (json_int_t)t->kad.expires);
	explicit_bzero(key, strlen(key));
	return o;
}

static void when(wall_ns t, char *out, size_t cap)
{
	time_t s = (time_t)(t / NS_PER_SEC);
	struct tm tm;
	strftime(out, cap, "%b %e %H:%M", localtime_r(&s, &tm));
}

int cli_aklog(struct cli *c)
{
	CLEANUP(json) json_t *realm = NULL;
	int rc = cli_ask(c, "token.realm", NULL, &realm);
	if (rc != CLI_OK)
		return rc;
	const char *own = string(realm, "cell"),
		   *cell = cli_value(c, "cell") ? cli_value(c, "cell") : own;
	bool ours = own && strcasecmp(cell, own) == 0;
	struct keys_aklog want = {
		.cell = cell,
		.realm = cli_value(c, "realm") ? cli_value(c, "realm")
			 : ours                ? string(realm, "realm")
					       : NULL,
		/* the cell's own realm is found without any setting; what the user set comes first */
		.krb5_conf = getenv("KRB5_CONFIG") || !ours ? NULL : string(realm, "krb5_conf"),
	};
	CLEANUP(buf) struct buf why = {0};
	CLEANUP(keys_token) struct keys_token token = {0};
	afs_err err = keys_aklog(&want, &token, &why);
	if (err != AFS_OK)
		return cli_fail(c, "%s", why.data && why.len ? why.data : afs_err_text(err));
	json_t *args = token_json(&token);
	if (!args)
		return cli_fail(c, "out of memory");
	CLEANUP(json) json_t *reply = NULL;
	rc = cli_ask(c, "token.set", args, &reply);
	if (rc == CLI_OK && cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:s, s:I}", "cell", token.cell, "expires",
						 (json_int_t)token.kad.expires));
	return rc;
}

int cli_tokens(struct cli *c)
{
	CLEANUP(json) json_t *reply = NULL;
	int rc = cli_ask(c, "token.list", NULL, &reply);
	if (rc != CLI_OK)
		return rc;
	json_t *list = json_object_get(reply, "tokens"), *t;
	if (cli_wants_json(c))
		return cli_print_json(c, json_incref(list));
	printf("\nTokens held by the Cache Manager:\n\n");
	size_t i;
	json_array_foreach(list, i, t)
	{
		char text[40];
		wall_ns expires = json_integer_value(json_object_get(t, "expires"));
		when(expires, text, sizeof(text));
		printf("User %s's tokens for afs@%s %s%s%s\n", string(t, "name"), string(t, "cell"),
			json_is_true(json_object_get(t, "expired")) ? "[>> Expired <<]"
			: expires                                   ? "[Expires "
								    : "[Never expires]",
			json_is_true(json_object_get(t, "expired")) || !expires ? "" : text,
			json_is_true(json_object_get(t, "expired")) || !expires ? "" : "]");
	}
	printf("   --End of list--\n");
	return CLI_OK;
}

int cli_unlog(struct cli *c)
{
	CLEANUP(json) json_t *held = NULL, *reply = NULL;
	const char *cell = cli_value(c, "cell");
	int rc = cli_ask(c, "token.list", NULL, &held);
	if (rc != CLI_OK)
		return rc;
	if (!cell && json_array_size(json_object_get(held, "tokens")) == 0)
		return CLI_OK; /* there is nothing to give up */
	return cli_ask(c, "token.drop", cell ? json_pack("{s:s}", "cell", cell) : NULL, &reply);
}
