/* SPDX-License-Identifier: BSD-2-Clause
 *
 * tokens, unlog: what the cache manager keeps for the user at this end of the socket. */
#include "cell/cli/handlers.h"

#include "cell/admin/manager.h"
#include "cell/base/mem.h"
#include "cell/keys/keys.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TOKENS_MAX = 64 };

DEFINE_CLEANUP_PTR(json, json_t, json_decref)

static const char *string(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static void when(wall_ns t, char *out, size_t cap)
{
	time_t s = (time_t)(t / NS_PER_SEC);
	struct tm tm;
	strftime(out, cap, "%b %e %H:%M", localtime_r(&s, &tm));
}

/* The caller's tokens as {"cell", "name", "rxkad", "rxgk", "level", "afs_id", "begins", "expires", "expired"}: from the manager that AFSSERVER
 * names, else from the running cell.  CLI_OK, or told. */
static int list_tokens(struct cli *c, json_t **out)
{
	*out = NULL;
	if (!manager_named()) {
		CLEANUP(json) json_t *reply = NULL;
		int rc = cli_ask(c, "token.list", NULL, &reply);
		*out = json_incref(json_object_get(reply, "tokens"));
		return rc;
	}
	CLEANUP(manager) struct manager *m = NULL;
	CLEANUP(buf) struct buf why = {};
	struct manager_token t;
	afs_err err = manager_open(&m, &why);
	*out = json_array();
	for (uint32_t i = 0; err == AFS_OK && i < TOKENS_MAX; i++)
		if ((err = manager_get(m, i, &t, &why)) == AFS_OK)
			json_array_append_new(*out, json_pack("{s:s, s:s, s:b, s:b, s:s*, s:o, s:I, s:I, s:b}", "cell", t.cell, "name", "", "rxkad", t.rxkad, "rxgk", t.rxgk,
							      "level", t.rxgk ? rx_level_text(t.level) : NULL, "afs_id",
							      t.id_told ? json_integer(t.afs_id) : json_null(), "begins", (json_int_t)t.begins, "expires", (json_int_t)t.expires, "expired",
							      t.expires && t.expires < clk_wall()));
	return err == AFS_OK || (m && err == AFS_ENOENT) ? CLI_OK : cli_fail(c, "%s", why.len ? why.data : afs_err_text(err));
}

int cli_tokens(struct cli *c)
{
	CLEANUP(json) json_t *list = NULL;
	json_t *t;
	int rc = list_tokens(c, &list);
	if (rc != CLI_OK)
		return rc;
	if (cli_wants_json(c))
		return cli_print_json(c, json_incref(list));
	printf("\nTokens held by the Cache Manager:\n\n");
	size_t i;
	json_array_foreach(list, i, t)
	{
		char text[40];
		wall_ns expires = json_integer_value(json_object_get(t, "expires"));
		long long id = (long long)json_integer_value(json_object_get(t, "afs_id"));
		bool told = json_is_integer(json_object_get(t, "afs_id")), expired = json_is_true(json_object_get(t, "expired"));
		when(expires, text, sizeof(text));
		const char *level = string(t, "level");
		for (int gk = 1; gk >= 0; gk--) { /* rxkad's in the words of stock tokens */
			if (!json_is_true(json_object_get(t, gk ? "rxgk" : "rxkad")))
				continue;
			if (told)
				printf("User's (AFS ID %lld) ", id);
			printf("%s%s%s %s for %s ", gk ? told ? "rxgk" : "Rxgk" : told ? "rxkad" : "Rxkad", gk ? " " : "", gk ? level ? level : "" : "", "tokens", string(t, "cell"));
			if (expired || !expires)
				printf("%s\n", expired ? "[>> Expired <<]" : "[Never expires]");
			else
				printf("[Expires %s]\n", text);
		}
		if (cli_has(c, "names") && *string(t, "name"))
			printf("    %s\n", string(t, "name"));
	}
	printf("   --End of list--\n");
	return CLI_OK;
}

static bool holds(const json_t *list, const char *cell)
{
	size_t i;
	json_t *t;
	json_array_foreach(list, i, t)
		if (strcasecmp(string(t, "cell"), cell) == 0)
			return true;
	return false;
}

static int drop(struct cli *c, const char *cell)
{
	CLEANUP(json) json_t *reply = NULL;
	if (!manager_named())
		return cli_ask(c, "token.drop", cell ? json_pack("{s:s}", "cell", cell) : NULL, &reply);
	CLEANUP(manager) struct manager *m = NULL;
	CLEANUP(buf) struct buf why = {};
	afs_err err = manager_open(&m, &why);
	if (err == AFS_OK)
		err = manager_drop(m, cell, &why);
	return err == AFS_OK ? CLI_OK : cli_fail(c, "%s", why.len ? why.data : afs_err_text(err));
}

int cli_unlog(struct cli *c)
{
	CLEANUP(json) json_t *list = NULL;
	const char *const *cells;
	size_t n = cli_values(c, "cell", &cells);
	int rc = list_tokens(c, &list);
	if (rc != CLI_OK)
		return rc;
	if (n == 0)
		return json_array_size(list) ? drop(c, NULL) : CLI_OK; /* there is nothing to give up */
	for (size_t i = 0; i < n; i++) {
		int one = holds(list, cells[i]) ? drop(c, cells[i]) : cli_fail(c, "you hold no token for %s", cells[i]);
		rc = rc == CLI_OK ? one : rc;
	}
	return rc;
}
