/* SPDX-License-Identifier: BSD-2-Clause
 *
 * call COMMAND JSON [owner] [token CELL]: runs a command as the console does, for tests/unit/cell/identity.sh: as
 * nobody, as the owner, or as the holder of the tickets in KRB5CCNAME.  Prints {"status", "result", "text"}. */
#include "cell/cli/cli.h"
#include "cell/keys/keys.h"

#include <stdio.h>
#include <string.h>

static void on_progress(void *ctx, const char *text) { fprintf(ctx, "# %s\n", text); }

int main(int argc, char **argv)
{
	CLEANUP(keys_token) struct keys_token token = {};
	CLEANUP(buf) struct buf why = {};
	if (argc < 3)
		return 99;
	json_t *args = json_loads(argv[2], 0, NULL);
	struct cli_call call = {.command = argv[1], .args = args, .progress = on_progress, .ctx = stderr};
	for (int i = 3; i < argc; i++) {
		if (strcmp(argv[i], "owner") == 0)
			call.owner = true;
		struct keys_aklog want = {.cell = strcmp(argv[i], "token") == 0 && i + 1 < argc ? argv[i + 1] : NULL};
		if (!want.cell)
			continue;
		if (keys_aklog(&want, &token, &why) != AFS_OK) {
			fprintf(stderr, "%s\n", why.data ? why.data : "no token");
			return 98;
		}
		call.token = &token;
		i++;
	}
	int status = cli_call(&call);
	json_t *out = json_pack("{s:i, s:o*, s:s*}", "status", status, "result", call.result, "text", call.text);
	json_dumpf(out, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(out);
	json_decref(args);
	mem_free(call.text);
	return 0;
}
