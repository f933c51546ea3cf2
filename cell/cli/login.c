/* SPDX-License-Identifier: BSD-2-Clause
 *
 * aklog and klog.  They run with the user's Kerberos tickets or password: they get the service ticket and hand
 * the token to the cache manager, which keeps it for the user at the other end of the socket.  A user of another
 * realm is registered with the cell the first time, as name@realm. */
#include "cell/admin/calls.h"
#include "cell/admin/manager.h"
#include "cell/cli/handlers.h"
#include "cell/cli/keyring.h"
#include "cell/cli/suite.h"
#include "cell/keys/keys.h"
#include "cell/proto/pt.h"
#include "cell/proto/token.h"
#include "cell/secret.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { NAME_MAX_ = 3 * RX_NAME_MAX, PASSWORD_MAX = 1024, TOKEN_LIST_MAX = 64 << 10 };

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
	char name[NAME_MAX_];
	uint8_t blob[TOKEN_BLOB_MAX];
	size_t n;
	snprintf(name, sizeof(name), "%s%s%s@%s", t->name, *t->instance ? "/" : "", t->instance, t->realm);
	if (token_blob_put(&t->both, t->cell, 0, blob, sizeof(blob), &n) != AFS_OK)
		return NULL;
	CLEANUP(str) char *set = hex(blob, n);
	explicit_bzero(blob, sizeof(blob));
	if (!set)
		return NULL;
	json_t *o = json_pack("{s:s, s:s, s:s}", "cell", t->cell, "name", name, "set", set);
	explicit_bzero(set, strlen(set));
	return o;
}

/* --- one token ------------------------------------------------------------------------------- */

struct login {
	struct cli *c;
	json_t *own;          /* what the running cell says of itself: cell, realm, krb5_conf */
	const char *krb5_conf; /* NULL: the system's, or what the user set */
	enum admin_class class;
	bool prdb, debug, keyring;
	json_t *done;         /* tokens that were got, for --json */
	struct manager *manager; /* NULL: the running cell's */
};

[[gnu::format(printf, 2, 3)]] static void debug(const struct login *l, const char *fmt, ...)
{
	va_list ap;
	if (!l->debug)
		return;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* The AFS name of the token's holder in its cell: of another realm than the cell's with @realm. */
static bool afs_name(const struct login *l, const struct keys_token *t, struct prname *out)
{
	char text[NAME_MAX_];
	bool ours = strcasecmp(t->cell, string(l->own, "cell")) == 0;
	const char *realm = ours && string(l->own, "realm") ? string(l->own, "realm") : t->cell;
	bool foreign = strcasecmp(t->realm, realm) != 0 && strcasecmp(t->realm, t->cell) != 0;
	int n = snprintf(text, sizeof(text), "%s%s%s%s%s", t->name, *t->instance ? "." : "", t->instance, foreign ? "@" : "", foreign ? t->realm : "");
	memset(out, 0, sizeof(*out));
	if (n < 0 || n > AFS_PRNAME_MAX)
		return false;
	for (int i = 0; i < n; i++)
		out->text[i] = (char)tolower((unsigned char)text[i]);
	return foreign;
}

/* The AFS id of the token's holder, when somebody wants it.  A foreigner's first coming: he makes his own entry.
 * Without one he is anonymous there, and told so.  0: not known. */
static int32_t resolve(struct login *l, const struct keys_token *t)
{
	struct prname name;
	CLEANUP(admin) struct admin *a = NULL;
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, TOKEN_LIST_MAX);
	bool foreign = afs_name(l, t, &name);
	if ((!foreign && !l->manager) || suite_open_as(l->c, t, &a) != CLI_OK)
		return 0;
	struct pt_name_to_id_in in = {.nlist = {&name, 1}};
	struct pt_name_to_id_out out = {};
	afs_err err = PT_CALL(a, name_to_id, &in, &out, &arena);
	if (err == AFS_OK && out.ilist.n == 1 && out.ilist.v[0] != AFS_ANONYMOUS) {
		debug(l, "%s has the AFS id %d", name.text, out.ilist.v[0]);
		return out.ilist.v[0];
	}
	if (err == AFS_OK && foreign) {
		struct pt_new_entry_in new = {.name = XDR_STR_OF(name.text), .flag = PT_USER};
		struct pt_new_entry_out made = {};
		err = PT_CALL(a, new_entry, &new, &made, NULL);
		if (err == AFS_OK) {
			cli_say(l->c, "doing first-time registration of %s at %s: id %d\n", name.text, t->cell, made.id);
			return made.id;
		}
	}
	if (foreign)
		cli_warn(l->c, "%s is not registered in %s, and stays anonymous there: %s; an administrator there makes the group "
			       "system:authuser@REALM, or the entry", name.text, t->cell, admin_why(a, err));
	return 0;
}

/* To the kernel, the cache manager that AFSSERVER names, or the running cell's. */
static int hand_over(struct login *l, const struct keys_token *t, int32_t id)
{
	if (l->keyring) {
		CLEANUP(buf) struct buf why = {};
		return keyring_add(t, &why) == AFS_OK ? CLI_OK : cli_fail(l->c, "%s", why.len ? why.data : "out of memory");
	}
	if (l->manager) {
		CLEANUP(buf) struct buf why = {};
		afs_err err = manager_put(l->manager, t, id, &why);
		return err == AFS_OK ? CLI_OK : cli_fail(l->c, "%s", why.len ? why.data : afs_err_text(err));
	}
	CLEANUP(json) json_t *reply = NULL;
	json_t *args = token_json(t);
	return args ? cli_ask(l->c, "token.set", args, &reply) : cli_fail(l->c, "the tokens do not fit: is there a large PAC in the ticket?");
}

/* Tokens of the class that is wanted.  A cache manager elsewhere, of whatever make, is sent rxkad's unless rxgk is
 * asked for by name: a stock one refuses a set with anything else in it. */
static afs_err get(struct login *l, const struct keys_aklog *want, struct keys_token *out, struct buf *why)
{
	CLEANUP(admin) struct admin *a = NULL;
	CLEANUP(buf) struct buf note = {};
	if (l->class == ADMIN_RXKAD || (l->class == ADMIN_ANY && l->manager)) {
		if (l->class == ADMIN_ANY)
			debug(l, "rxkad, which every cache manager that AFSSERVER can name understands; -class rxgk sends another.");
		return keys_aklog(want, out, why);
	}
	if (suite_find_cell(l->c, want->cell, &a, &note) != CLI_OK) {
		if (l->class == ADMIN_RXGK) {
			buf_printf(why, "rxgk is negotiated with the cell's database servers: %s", note.len ? note.data : "which cannot be found");
			return AFS_ENOENT;
		}
		cli_warn(l->c, "%s: a token of rxkad, as rxgk's is negotiated with the cell's database servers: %s", want->cell,
			note.len ? note.data : "which cannot be found");
		return keys_aklog(want, out, why);
	}
	afs_err err = admin_get_token(a, want, l->class, out, &note, why);
	if (err == AFS_OK && note.len)
		cli_warn(l->c, "%s: a token of %s", want->cell, note.data);
	return err;
}

/* A token for `cell` from the tickets in `ccache` (NULL: the user's), to the cache manager. */
static int one_cell(struct login *l, const char *cell, const char *realm, const char *ccache)
{
	bool ours = strcasecmp(cell, string(l->own, "cell")) == 0;
	struct keys_aklog want = {.cell = cell, .realm = realm ? realm : ours ? string(l->own, "realm") : NULL, .krb5_conf = l->krb5_conf, .ccache = ccache};
	CLEANUP(buf) struct buf why = {};
	CLEANUP(keys_token) struct keys_token token = {};
	debug(l, "Authenticating to cell %s.", cell);
	afs_err err = get(l, &want, &token, &why);
	if (err != AFS_OK)
		return cli_fail(l->c, "%s", why.data && why.len ? why.data : afs_err_text(err));
	const char *class = rx_token_has_gk(&token.both) ? "rxgk" : "rxkad";
	debug(l, "Ticket of %s%s%s@%s with kvno %d.", token.name, *token.instance ? "/" : "", token.instance, token.realm, token.kad.kvno);
	debug(l, "Connections use %s%s%s.", class, rx_token_has_gk(&token.both) ? ", level " : "", rx_token_has_gk(&token.both) ? rx_level_text(token.gk.terms.level) : "");
	int status = hand_over(l, &token, l->prdb ? resolve(l, &token) : 0);
	if (status == CLI_OK)
		json_array_append_new(l->done, json_pack("{s:s, s:s, s:I}", "cell", token.cell, "class", class, "expires", (json_int_t)rx_token_expires(&token.both)));
	return status;
}

/* A cache manager elsewhere: which cell is the local one is as for the other suites. */
static int begin_far(struct login *l, struct cli *c)
{
	CLEANUP(admin) struct admin *a = NULL;
	CLEANUP(buf) struct buf why = {};
	int status = suite_open_cell(c, NULL, &a);
	if (status != CLI_OK)
		return status;
	l->own = json_pack("{s:s}", "cell", admin_cell(a));
	if (!l->keyring && manager_open(&l->manager, &why) != AFS_OK)
		return cli_fail(c, "%s", why.len ? why.data : "no UDP port can be opened");
	return CLI_OK;
}

/* "any" for a cell that says nothing. */
static bool class_named(const char *text, enum admin_class *out)
{
	static const char *const names[] = {[ADMIN_ANY] = "any", [ADMIN_RXGK] = "rxgk", [ADMIN_RXKAD] = "rxkad"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(text ? text : "any", names[i]) == 0) {
			*out = (enum admin_class)i;
			return true;
		}
	return false;
}

static int begin(struct login *l, struct cli *c, bool keyring)
{
	*l = (struct login){.c = c, .done = json_array(), .prdb = !cli_has(c, "noprdb"), .keyring = keyring};
	int status = keyring || manager_named() ? begin_far(l, c) : cli_ask(c, "token.realm", NULL, &l->own);
	if (status == CLI_OK && !string(l->own, "cell"))
		status = cli_fail(c, "the running cell does not say its name");
	if (status == CLI_OK && !class_named(string(l->own, "class"), &l->class))
		status = cli_fail(c, "the running cell wants tokens of the class \"%s\", which this afscell does not know", string(l->own, "class"));
	/* the cell's own realm is found without any setting; what the user set comes first */
	if (status == CLI_OK && !getenv("KRB5_CONFIG"))
		l->krb5_conf = string(l->own, "krb5_conf");
	return status;
}

static inline void login_cleanup(struct login *l)
{
	json_decref(l->own);
	json_decref(l->done);
	if (l->manager)
		manager_close(l->manager);
}

/* What stands in the rows for options of stock tools that have no meaning here. */
static int refuse_old(struct cli *c)
{
	static const struct {
		const char *row, *why;
	} old[] = {{"insecure_des", "single-DES is not done here"}, {"setpag", "there are no PAGs here: tokens belong to the user id"}};
	for (size_t i = 0; i < ARRAY_SIZE(old); i++)
		if (cli_has(c, old[i].row))
			return cli_misuse(c, "-%s: %s", old[i].row, old[i].why);
	return CLI_OK;
}

/* --- aklog ----------------------------------------------------------------------------------- */

static int cell_of_path(struct cli *c, const char *path, char *out, size_t cap)
{
	ssize_t n = getxattr(path, "afs.cell", out, cap - 1);
	if (n < 0)
		return cli_fail(c, "%s: %s", path, errno == ENOTSUP || errno == ENODATA ? "it is not in AFS" : strerror(errno));
	out[n] = '\0';
	return CLI_OK;
}

/* The address of each database server, for -hosts. */
static int print_hosts(struct cli *c, const char *cell)
{
	CLEANUP(admin) struct admin *a = NULL;
	const uint32_t *ips;
	int status = suite_open_cell(c, cell, &a);
	for (size_t i = 0, n = status == CLI_OK ? admin_db_servers(a, &ips) : 0; i < n; i++)
		cli_say(c, "host: %u.%u.%u.%u\n", ips[i] >> 24, ips[i] >> 16 & 255, ips[i] >> 8 & 255, ips[i] & 255);
	return status;
}

static int for_cell(struct login *l, const char *cell)
{
	struct cli *c = l->c;
	if (cli_has(c, "zsubs"))
		cli_say(c, "zsub: %s\n", cell);
	int status = cli_has(c, "hosts") ? print_hosts(c, cell) : CLI_OK;
	if (status == CLI_OK && !cli_has(c, "noauth"))
		status = one_cell(l, cell, cli_value(c, "k"), NULL);
	return status;
}

int cli_aklog(struct cli *c)
{
	CLEANUP(login) struct login l = {};
	int status = refuse_old(c);
	if (status == CLI_OK)
		status = begin(&l, c, cli_has(c, "keyring"));
	if (status == CLI_OK && cli_value(c, "class") && !class_named(cli_value(c, "class"), &l.class))
		status = cli_misuse(c, "-class %s: any, rxgk or rxkad", cli_value(c, "class"));
	if (status != CLI_OK)
		return status;
	l.debug = cli_has(c, "d");
	const char *const *words, *cell = cli_value(c, "cell");
	size_t n = cli_values(c, "where", &words);
	char at[RX_NAME_MAX];
	if (cli_value(c, "path") && (status = cell_of_path(c, cli_value(c, "path"), at, sizeof(at))) == CLI_OK)
		status = for_cell(&l, at);
	if (status == CLI_OK && cell)
		status = for_cell(&l, cell);
	for (size_t i = 0; status == CLI_OK && i < n; i++) {
		if (strcmp(words[i], "-524") == 0) /* a number to the parser */
			return cli_misuse(c, "-524: Kerberos 4 is not done here");
		bool path = strchr(words[i], '/') || strcmp(words[i], ".") == 0 || strcmp(words[i], "..") == 0;
		status = path ? cell_of_path(c, words[i], at, sizeof(at)) : CLI_OK;
		if (status == CLI_OK)
			status = for_cell(&l, path ? at : words[i]);
	}
	if (status == CLI_OK && !cell && !n && !cli_value(c, "path"))
		status = for_cell(&l, string(l.own, "cell"));
	if (status == CLI_OK && cli_wants_json(c))
		return cli_print_json(c, json_incref(l.done));
	return status;
}

/* --- klog ------------------------------------------------------------------------------------ */

static int get_password(struct cli *c, const char *who, char out[PASSWORD_MAX])
{
	const char *given = cli_value(c, "password");
	if (given) {
		if (strlen(given) >= PASSWORD_MAX)
			return cli_misuse(c, "the password is longer than %d letters", PASSWORD_MAX - 1);
		snprintf(out, PASSWORD_MAX, "%s", given);
		return CLI_OK;
	}
	if (cli_has(c, "pipe")) {
		if (!fgets(out, PASSWORD_MAX, stdin))
			return cli_fail(c, "no password came from standard input");
		out[strcspn(out, "\r\n")] = '\0';
		return CLI_OK;
	}
	CLEANUP(buf) struct buf why = {};
	CLEANUP(secret) char *password = NULL;
	if (secret_ask(who, &password, &why) != AFS_OK)
		return cli_fail(c, "%s", why.data ? why.data : "no password was given");
	snprintf(out, PASSWORD_MAX, "%s", password);
	return CLI_OK;
}

int cli_klog(struct cli *c)
{
	CLEANUP(login) struct login l = {};
	int status = refuse_old(c);
	if (status == CLI_OK && cli_has(c, "unwrap"))
		status = cli_misuse(c, "-unwrap: Kerberos 4 is not done here");
	if (status == CLI_OK)
		status = begin(&l, c, false);
	if (status != CLI_OK)
		return status;
	const char *cell = cli_value(c, "cell") ? cli_value(c, "cell") : string(l.own, "cell"), *user = cli_value(c, "principal");
	bool ours = strcasecmp(cell, string(l.own, "cell")) == 0;
	CLEANUP(str) char *upper = mem_strdup(cell);
	if (!upper)
		return cli_fail(c, "out of memory");
	for (char *p = upper; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	const char *realm = cli_value(c, "k") ? cli_value(c, "k") : ours && string(l.own, "realm") ? string(l.own, "realm") : upper;
	const char *login_name = user ? user : getenv("USER");
	if (!login_name || !*login_name)
		return cli_misuse(c, "who are you? give -principal");
	CLEANUP(str) char *who = mem_printf("%s%s%s", login_name, strchr(login_name, '@') ? "" : "@", strchr(login_name, '@') ? "" : realm);
	char password[PASSWORD_MAX] = "";
	status = who ? get_password(c, who, password) : cli_fail(c, "out of memory");
	/* without -tmp the ticket stays in this process */
	const char *ccache = cli_has(c, "tmp") ? NULL : "MEMORY:klog";
	if (status == CLI_OK) {
		CLEANUP(buf) struct buf why = {};
		struct keys_login in = {.principal = who, .password = password, .krb5_conf = l.krb5_conf, .ccache = ccache};
		afs_err err = keys_login(&in, &why);
		if (err != AFS_OK)
			status = cli_fail(c, "%s", why.data && why.len ? why.data : afs_err_text(err));
	}
	explicit_bzero(password, sizeof(password));
	if (status == CLI_OK)
		status = one_cell(&l, cell, cli_value(c, "k"), ccache);
	if (status == CLI_OK && cli_wants_json(c))
		return cli_print_json(c, json_incref(l.done));
	return status;
}
