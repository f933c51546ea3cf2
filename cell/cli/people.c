/* SPDX-License-Identifier: BSD-2-Clause
 *
 * user, group and key: asked of the running cell (cell/verbs_people.c, cell/verbs_keys.c). */
#include "cell/cli/handlers.h"

#include "cell/base/mem.h"
#include "cell/base/text.h"
#include "cell/cli/suite.h"
#include "cell/secret.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PASSWORD_MAX = 1024 };

DEFINE_CLEANUP_PTR(json, json_t, json_decref)

static const char *string(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "-";
}
static long long integer(const json_t *o, const char *key) { return (long long)json_integer_value(json_object_get(o, key)); }

/* --- arguments ------------------------------------------------------------------------------- */

static void put_words(struct cli *c, const char *row, json_t *args, const char *key)
{
	const char *const *v;
	size_t n = cli_values(c, row, &v);
	json_t *list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(v[i]));
	json_object_set_new(args, key, list);
}

static int put_id(struct cli *c, json_t *args)
{
	int64_t id;
	const char *text = cli_value(c, "id");
	if (!text)
		return CLI_OK;
	if (!text_int(text, &id) || id < INT32_MIN || id > INT32_MAX || id == 0)
		return cli_misuse(c, "--id %s: expected a number", text);
	json_object_set_new(args, "id", json_integer(id));
	return CLI_OK;
}

static int first_line(struct cli *c, const char *path, char out[PASSWORD_MAX])
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	if (!f)
		return cli_fail(c, "%s: %s", path, strerror(errno));
	bool got = fgets(out, PASSWORD_MAX, f);
	if (f != stdin)
		fclose(f);
	out[strcspn(out, "\r\n")] = '\0';
	return got && *out ? CLI_OK : cli_fail(c, "%s: there is no password in its first line", path);
}

static int put_password(struct cli *c, const char *user, json_t *args)
{
	const char *file = cli_value(c, "password-file"), *text = cli_value(c, "password");
	if ((file != NULL) + (text != NULL) + cli_has(c, "ask") > 1)
		return cli_misuse(c, "--password-file, --ask and --password exclude each other");
	if (text) {
		json_object_set_new(args, "password", json_string(text));
	} else if (file) {
		char line[PASSWORD_MAX];
		int status = first_line(c, file, line);
		if (status == CLI_OK)
			json_object_set_new(args, "password", json_string(line));
		explicit_bzero(line, sizeof(line));
		return status;
	} else if (cli_has(c, "ask")) {
		char none[] = "";
		const struct conf_user from = {.name = (char *)(uintptr_t)user, .password = CONF_SECRET_PROMPT, .password_file = none, .password_env = none};
		CLEANUP(buf) struct buf why = {};
		CLEANUP(secret) char *password = NULL;
		if (secret_get(&from, &password, &why) != AFS_OK || !password)
			return cli_fail(c, "%s", why.data ? why.data : "no password was given");
		json_object_set_new(args, "password", json_string(password));
	}
	return CLI_OK;
}

/* Asks `verb` about the row "name". */
static int ask_name(struct cli *c, const char *verb, json_t *args, json_t **reply)
{
	if (!args)
		args = json_object();
	json_object_set_new(args, "name", json_string(cli_value(c, "name")));
	return cli_ask(c, verb, args, reply);
}

/* --- users ----------------------------------------------------------------------------------- */

static void say_password(struct cli *c, const json_t *reply)
{
	if (json_object_get(reply, "password"))
		cli_say(c, "password: %s   (shown once)\n", string(reply, "password"));
}

int cli_user_add(struct cli *c)
{
	CLEANUP(json) json_t *reply = NULL, *args = json_object();
	put_words(c, "group", args, "groups");
	int status = put_id(c, args);
	if (status == CLI_OK)
		status = put_password(c, cli_value(c, "name"), args);
	if (status == CLI_OK)
		status = ask_name(c, "user.add", json_incref(args), &reply);
	if (status != CLI_OK)
		return status;
	if (cli_wants_json(c))
		return cli_print_json(c, TAKE(reply));
	const char *principal = json_string_value(json_object_get(reply, "principal"));
	printf("User %s has id %lld%s%s%s%s.\n", string(reply, "name"), integer(reply, "id"), principal ? " and the principal " : "",
		principal ? principal : "", principal ? "" : "; his principal is kept by the external realm",
		json_is_true(json_object_get(reply, "completed")) ? "; what was half there was completed" : "");
	say_password(c, reply);
	return CLI_OK;
}

int cli_user_passwd(struct cli *c)
{
	CLEANUP(json) json_t *reply = NULL, *args = json_object();
	int status = put_password(c, cli_value(c, "name"), args);
	if (status == CLI_OK)
		status = ask_name(c, "user.passwd", json_incref(args), &reply);
	if (status != CLI_OK)
		return status;
	if (cli_wants_json(c))
		return cli_print_json(c, TAKE(reply));
	printf("User %s has another password.\n", string(reply, "name"));
	say_password(c, reply);
	return CLI_OK;
}

static int simple(struct cli *c, const char *verb, const char *done)
{
	CLEANUP(json) json_t *reply = NULL;
	int status = ask_name(c, verb, NULL, &reply);
	if (status != CLI_OK)
		return status;
	if (cli_wants_json(c))
		return cli_print_json(c, TAKE(reply));
	printf("%s %s.\n", string(reply, "name"), done);
	return CLI_OK;
}

int cli_user_disable(struct cli *c) { return simple(c, "user.disable", "gets no more tickets; those that were given run out by themselves"); }
int cli_user_enable(struct cli *c) { return simple(c, "user.enable", "may get tickets"); }
int cli_user_remove(struct cli *c) { return simple(c, "user.remove", "is removed; files and access lists keep the number"); }
int cli_group_remove(struct cli *c) { return simple(c, "group.remove", "is removed"); }

static void print_words(const json_t *list)
{
	size_t i;
	json_t *v;
	json_array_foreach(list, i, v) printf("%s%s", i ? " " : "", json_string_value(v));
	printf("%s\n", json_array_size(list) ? "" : "-");
}

int cli_user_show(struct cli *c)
{
	CLEANUP(json) json_t *u = NULL;
	int status = ask_name(c, "user.show", NULL, &u);
	if (status != CLI_OK)
		return status;
	if (cli_wants_json(c))
		return cli_print_json(c, TAKE(u));
	long long changed = integer(u, "password_changed");
	bool has_id = json_is_integer(json_object_get(u, "id"));
	printf("name       %s\n", string(u, "name"));
	if (has_id)
		printf("id         %lld\n", integer(u, "id"));
	else
		printf("id         -   (half there; \"afscell user add\" completes it)\n");
	printf("principal  %s%s\n", string(u, "principal"), json_is_true(json_object_get(u, "disabled")) ? "   (disabled)" : "");
	printf("password   %s%s\n", changed ? "changed " : "-", changed ? CTIME(changed) : "");
	printf("groups     ");
	print_words(json_object_get(u, "groups"));
	return CLI_OK;
}

int cli_user_list(struct cli *c)
{
	CLEANUP(json) json_t *reply = NULL;
	int status = cli_ask(c, "user.list", NULL, &reply);
	if (status != CLI_OK)
		return status;
	json_t *list = json_object_get(reply, "users"), *u;
	if (cli_wants_json(c))
		return cli_print_json(c, json_incref(list));
	size_t i;
	printf("%-24s %10s  %-24s %s\n", "Name", "ID", "Principal", "State");
	json_array_foreach(list, i, u)
	{
		bool entry = json_is_integer(json_object_get(u, "id")), principal = json_is_string(json_object_get(u, "principal"));
		char id[24] = "-";
		if (entry)
			snprintf(id, sizeof(id), "%lld", integer(u, "id"));
		printf("%-24s %10s  %-24s %s\n", string(u, "name"), id, string(u, "principal"),
			json_is_true(json_object_get(u, "disabled")) ? "disabled" : !entry ? "no protection entry" : principal ? "" : "no principal");
	}
	return CLI_OK;
}

/* --- groups ---------------------------------------------------------------------------------- */

int cli_group_add(struct cli *c)
{
	CLEANUP(json) json_t *reply = NULL, *args = json_object();
	put_words(c, "member", args, "members");
	if (cli_value(c, "owner"))
		json_object_set_new(args, "owner", json_string(cli_value(c, "owner")));
	int status = put_id(c, args);
	if (status == CLI_OK)
		status = ask_name(c, "group.add", json_incref(args), &reply);
	if (status != CLI_OK)
		return status;
	if (cli_wants_json(c))
		return cli_print_json(c, TAKE(reply));
	printf("Group %s has id %lld.\n", string(reply, "name"), integer(reply, "id"));
	return CLI_OK;
}

static int print_group(struct cli *c, json_t *g)
{
	if (cli_wants_json(c))
		return cli_print_json(c, json_incref(g));
	printf("name     %s\n", string(g, "name"));
	if (json_object_get(g, "id"))
		printf("id       %lld\nowner    %s\n", integer(g, "id"), string(g, "owner"));
	printf("members  ");
	print_words(json_object_get(g, "members"));
	return CLI_OK;
}

int cli_group_show(struct cli *c)
{
	CLEANUP(json) json_t *g = NULL;
	int status = ask_name(c, "group.show", NULL, &g);
	return status == CLI_OK ? print_group(c, g) : status;
}

static int members(struct cli *c, const char *verb)
{
	CLEANUP(json) json_t *g = NULL;
	json_t *args = json_object();
	put_words(c, "member", args, "members");
	int status = ask_name(c, verb, args, &g);
	return status == CLI_OK ? print_group(c, g) : status;
}

int cli_group_adduser(struct cli *c) { return members(c, "group.adduser"); }
int cli_group_removeuser(struct cli *c) { return members(c, "group.removeuser"); }

int cli_group_list(struct cli *c)
{
	CLEANUP(json) json_t *reply = NULL;
	int status = cli_ask(c, "group.list", NULL, &reply);
	if (status != CLI_OK)
		return status;
	json_t *list = json_object_get(reply, "groups"), *g;
	if (cli_wants_json(c))
		return cli_print_json(c, json_incref(list));
	size_t i;
	printf("%-32s %10s %8s  %s\n", "Name", "ID", "Members", "Owner");
	json_array_foreach(list, i, g)
		printf("%-32s %10lld %8lld  %s\n", string(g, "name"), integer(g, "id"), integer(g, "members"), string(g, "owner"));
	return CLI_OK;
}

/* --- keys ------------------------------------------------------------------------------------ */

static int print_keys(struct cli *c, json_t *k)
{
	if (cli_wants_json(c))
		return cli_print_json(c, json_incref(k));
	size_t i;
	json_t *e;
	json_array_foreach(json_object_get(k, "keys"), i, e)
		printf("key %lld  %s  checksum %lld%s\n", integer(e, "kvno"), string(e, "enctype"), integer(e, "checksum"), i ? "" : "  (in use)");
	if (integer(k, "since"))
		printf("The newest was made on %s.\n", CTIME(integer(k, "since")));
	if (integer(k, "old_until"))
		printf("Tickets sealed with an older one run out by %s; then: afscell key retire\n", CTIME(integer(k, "old_until")));
	if (json_object_get(k, "exported"))
		printf("Written for stock OpenAFS: %s\n", string(k, "exported"));
	return CLI_OK;
}

static int ask_keys(struct cli *c, const char *verb, const char *dir, bool force)
{
	CLEANUP(json) json_t *k = NULL;
	char cwd[4096] = "";
	if (dir && *dir != '/' && !getcwd(cwd, sizeof(cwd)))
		return cli_fail(c, "the current directory has no path: %s", strerror(errno));
	CLEANUP(str) char *whole = dir ? mem_printf("%s%s%s", cwd, *cwd ? "/" : "", dir) : NULL;
	if (dir && !whole)
		return cli_fail(c, "out of memory");
	json_t *args = json_pack("{s:b}", "force", (int)force);
	if (whole)
		json_object_set_new(args, "dir", json_string(whole));
	int status = cli_ask(c, verb, args, &k);
	return status == CLI_OK ? print_keys(c, k) : status;
}

int cli_key_list(struct cli *c) { return ask_keys(c, "key.list", NULL, false); }
int cli_key_rotate(struct cli *c) { return ask_keys(c, "key.rotate", cli_value(c, "export"), false); }
int cli_key_retire(struct cli *c) { return ask_keys(c, "key.retire", cli_value(c, "export"), cli_has(c, "force")); }
int cli_key_reload(struct cli *c) { return ask_keys(c, "key.reload", NULL, false); }
int cli_key_export(struct cli *c) { return ask_keys(c, "key.reload", cli_value(c, "dir"), false); }
