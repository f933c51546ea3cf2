/* SPDX-License-Identifier: BSD-2-Clause
 *
 * tokens, unlog: what the cache manager keeps for the user at this end of the socket. */
#include "cell/cli/handlers.h"

#include "cell/base/mem.h"
#include "cell/keys/keys.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
	return cli_ask(c, "token.drop", cell ? json_pack("{s:s}", "cell", cell) : NULL, &reply);
}

int cli_unlog(struct cli *c)
{
	CLEANUP(json) json_t *held = NULL;
	const char *const *cells;
	size_t n = cli_values(c, "cell", &cells);
	int rc = cli_ask(c, "token.list", NULL, &held);
	if (rc != CLI_OK)
		return rc;
	json_t *list = json_object_get(held, "tokens");
	if (n == 0)
		return json_array_size(list) ? drop(c, NULL) : CLI_OK; /* there is nothing to give up */
	for (size_t i = 0; i < n; i++) {
		int one = holds(list, cells[i]) ? drop(c, cells[i]) : cli_fail(c, "you hold no token for %s", cells[i]);
		rc = rc == CLI_OK ? one : rc;
	}
	return rc;
}
