/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bos: what changes a server. */
#include "cell/cli/bos.h"

#include "cell/base/text.h"
#include "cell/cli/handlers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CANONICAL_BIN "/usr/afs/bin"
#define NO_NOTIFIER "__NONOTIFIER__"

int bos_begin(struct bos *b, struct cli *c)
{
	uint32_t ip;
	*b = (struct bos){.c = c, .server = cli_value(c, "server")};
	arena_init(&b->arena, BOS_ARENA);
	int status = suite_open(c, true, &b->a);
	if (status != CLI_OK)
		return status;
	afs_err err = admin_host_ip(b->a, b->server, &ip);
	if (err == AFS_OK)
		err = admin_conn(b->a, ip, ADMIN_BOS, &b->conn);
	return err == AFS_OK ? CLI_OK : cli_fail(c, "%s", admin_why(b->a, err));
}

void bos_cleanup(struct bos *b)
{
	if (b->a)
		admin_close(b->a);
	arena_fini(&b->arena);
}

void bos_failed(struct bos *b, afs_err err, const char *fmt, ...)
{
	va_list ap;
	char text[512];
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	int32_t code = admin_code(b->a);
	cli_fail(b->c, "%s: %s", text, admin_why(b->a, err));
	b->status = code > 0 && (code & 0xff) ? code & 0xff : CLI_FAILED;
}

/* --- several of a kind ------------------------------------------------------------------------------------ */

/* Runs `each` for every word of a row. */
static void for_words(struct bos *b, const char *row, const char *what, afs_err (*each)(struct bos *, const char *word))
{
	const char *const *v;
	size_t n = cli_values(b->c, row, &v);
	for (size_t i = 0; i < n; i++) {
		afs_err err = each(b, v[i]);
		if (err != AFS_OK)
			bos_failed(b, err, "cannot %s %s", what, v[i]);
	}
}

static int words_command(struct cli *c, const char *row, const char *what, afs_err (*each)(struct bos *, const char *))
{
	CLEANUP(bos) struct bos b = {};
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	for_words(&b, row, what, each);
	return b.status;
}

/* A call whose only argument is a word. */
#define WORD_CALL(name, fn, field)                                                                 \
	static afs_err name(struct bos *b, const char *word)                                       \
	{                                                                                          \
		struct bos_##fn##_in in = {.field = XDR_STR_OF(word)};                             \
		struct bos_##fn##_out out;                                                         \
		return BOS_CALL(b->a, b->conn, fn, &in, &out, NULL);                               \
	}
WORD_CALL(delete_instance, delete_bnode, instance)
WORD_CALL(restart_instance, restart, instance)
WORD_CALL(add_user, add_suser, name)
WORD_CALL(delete_user, delete_suser, name)
WORD_CALL(delete_host, delete_cell_host, name)
#undef WORD_CALL

int cli_bos_delete(struct cli *c) { return words_command(c, "instance", "delete", delete_instance); }
int cli_bos_adduser(struct cli *c) { return words_command(c, "user", "add the superuser", add_user); }
int cli_bos_removeuser(struct cli *c) { return words_command(c, "user", "remove the superuser", delete_user); }
int cli_bos_removehost(struct cli *c) { return words_command(c, "host", "remove the host", delete_host); }

static afs_err add_host(struct bos *b, const char *host)
{
	char name[BOS_STR_MAX + 1];
	snprintf(name, sizeof(name), cli_has(b->c, "clone") ? "[%s]" : "%s", host);
	struct bos_add_cell_host_in in = {XDR_STR_OF(name)};
	struct bos_add_cell_host_out out;
	return BOS_CALL(b->a, b->conn, add_cell_host, &in, &out, NULL);
}
int cli_bos_addhost(struct cli *c) { return words_command(c, "host", "add the host", add_host); }

static afs_err remove_key(struct bos *b, const char *word)
{
	int64_t kvno;
	if (!text_int(word, &kvno) || kvno < 0 || kvno > INT32_MAX)
		return admin_refuse(b->a, AFS_EINVAL, "it is no version number");
	struct bos_delete_key_in in = {(int32_t)kvno};
	struct bos_delete_key_out out;
	return BOS_CALL(b->a, b->conn, delete_key, &in, &out, NULL);
}
int cli_bos_removekey(struct cli *c) { return words_command(c, "kvno", "remove key", remove_key); }

/* --- starting and stopping ---------------------------------------------------------------------------------- */

static afs_err set_goal(struct bos *b, const char *instance, int32_t goal, bool for_good)
{
	if (for_good) {
		struct bos_set_status_in in = {XDR_STR_OF(instance), goal};
		struct bos_set_status_out out;
		return BOS_CALL(b->a, b->conn, set_status, &in, &out, NULL);
	}
	struct bos_set_tstatus_in in = {XDR_STR_OF(instance), goal};
	struct bos_set_tstatus_out out;
	return BOS_CALL(b->a, b->conn, set_tstatus, &in, &out, NULL);
}

static afs_err start_for_good(struct bos *b, const char *w) { return set_goal(b, w, BOS_RUNNING, true); }
static afs_err stop_for_good(struct bos *b, const char *w) { return set_goal(b, w, BOS_SHUTDOWN, true); }
static afs_err start_for_now(struct bos *b, const char *w) { return set_goal(b, w, BOS_RUNNING, false); }
static afs_err stop_for_now(struct bos *b, const char *w) { return set_goal(b, w, BOS_SHUTDOWN, false); }

static afs_err wait_all(struct bos *b)
{
	struct bos_wait_all_in in;
	struct bos_wait_all_out out;
	return BOS_CALL(b->a, b->conn, wait_all, &in, &out, NULL);
}

static void wait_if_asked(struct bos *b)
{
	if (b->status != CLI_OK || !cli_has(b->c, "wait"))
		return;
	afs_err err = wait_all(b);
	if (err != AFS_OK)
		bos_failed(b, err, "cannot wait until they have stopped");
}

int cli_bos_start(struct cli *c) { return words_command(c, "instance", "start", start_for_good); }

int cli_bos_stop(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	for_words(&b, "instance", "stop", stop_for_good);
	wait_if_asked(&b);
	return b.status;
}

int cli_bos_shutdown(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	struct bos_shutdown_all_in in;
	struct bos_shutdown_all_out out;
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	for_words(&b, "instance", "shut down", stop_for_now);
	afs_err err = cli_has(c, "instance") ? AFS_OK : BOS_CALL(b.a, b.conn, shutdown_all, &in, &out, NULL);
	if (err != AFS_OK)
		bos_failed(&b, err, "cannot shut down");
	wait_if_asked(&b);
	return b.status;
}

int cli_bos_startup(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	struct bos_startup_all_in in;
	struct bos_startup_all_out out;
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	for_words(&b, "instance", "start", start_for_now);
	afs_err err = cli_has(c, "instance") ? AFS_OK : BOS_CALL(b.a, b.conn, startup_all, &in, &out, NULL);
	if (err != AFS_OK)
		bos_failed(&b, err, "cannot start");
	return b.status;
}

int cli_bos_restart(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	bool self = cli_has(c, "bosserver"), all = cli_has(c, "all");
	if (self + all + cli_has(c, "instance") != 1)
		return cli_misuse(c, "give names of services, or -all, or -bosserver");
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	for_words(&b, "instance", "restart", restart_instance);
	afs_err err = AFS_OK;
	if (all) {
		struct bos_restart_all_in in;
		struct bos_restart_all_out out;
		err = BOS_CALL(b.a, b.conn, restart_all, &in, &out, NULL);
	} else if (self) {
		struct bos_re_bozo_in in;
		struct bos_re_bozo_out out;
		err = BOS_CALL(b.a, b.conn, re_bozo, &in, &out, NULL);
		if (err == AFS_EDEAD || err == AFS_ERESTARTING)
			err = AFS_OK; /* it did not live to answer, which is what was asked for */
	}
	if (err != AFS_OK)
		bos_failed(&b, err, "cannot restart");
	return b.status;
}

/* --- instances ---------------------------------------------------------------------------------------------- */

int cli_bos_create(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	const char *const *cmd, *notifier = cli_value(c, "notifier");
	size_t n = cli_values(c, "cmd", &cmd);
	struct bos_create_bnode_in in = {.type = XDR_STR_OF(cli_value(c, "type")), .instance = XDR_STR_OF(cli_value(c, "instance")),
		.notifier = XDR_STR_OF(notifier ? notifier : NO_NOTIFIER)};
	struct bos_create_bnode_out out;
	struct xdr_str *parms[] = {&in.p1, &in.p2, &in.p3, &in.p4, &in.p5};
	if (n > ARRAY_SIZE(parms))
		return cli_misuse(c, "a service has at most %zu commands", ARRAY_SIZE(parms));
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	for (size_t i = 0; i < n; i++)
		*parms[i] = XDR_STR_OF(cmd[i]);
	afs_err err = BOS_CALL(b.a, b.conn, create_bnode, &in, &out, NULL);
	if (err != AFS_OK)
		bos_failed(&b, err, "cannot make the service %s of type %s", cli_value(c, "instance"), cli_value(c, "type"));
	return b.status;
}

/* --- programs ------------------------------------------------------------------------------------------------ */

/* Where the program is on the server. */
static const char *remote_path(struct cli *c, const char *file, char out[BOS_STR_MAX + 1])
{
	const char *dir = cli_value(c, "dir"), *slash = strrchr(file, '/');
	int n = snprintf(out, BOS_STR_MAX + 1, "%s/%s", dir ? dir : CANONICAL_BIN, slash ? slash + 1 : file);
	return n <= BOS_STR_MAX ? out : NULL;
}

static afs_err send_file(struct bos *b, int fd, const struct stat *st, const char *path)
{
	const struct rpc_proc *proc = &bos_iface.procs[bos_op_install];
	struct bos_install_in in = {XDR_STR_OF(path), (int32_t)st->st_size, (int32_t)(st->st_mode & 0777), (int32_t)st->st_mtime};
	struct bos_install_out out;
	struct rpc_call *call;
	afs_err err = rpc_begin(b->conn, proc, &in, &call);
	if (err != AFS_OK)
		return admin_note(b->a, b->conn, proc, err, 0);
	for (off_t left = st->st_size; left > 0;) {
		uint8_t *p;
		size_t room;
		err = rpc_write_room(call, (size_t)left, &p, &room);
		if (err != AFS_OK)
			break; /* the server says why at the end */
		ssize_t n = read(fd, p, room);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			rpc_cancel(call);
			return admin_refuse(b->a, AFS_EIO, "the file cannot be read: %s", n ? strerror(errno) : "it became shorter");
		}
		if (rpc_write_commit(call, (size_t)n) != AFS_OK)
			break; /* as above */
		left -= n;
	}
	struct rpc_result res = {};
	err = rpc_end(call, &out, &res);
	return admin_note(b->a, b->conn, proc, err, res.code);
}

static afs_err install_one(struct bos *b, const char *file)
{
	char path[BOS_STR_MAX + 1];
	struct stat st;
	CLEANUP(fd) int fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		return admin_refuse(b->a, afs_err_from_errno(errno), "%s", strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size > INT32_MAX)
		return admin_refuse(b->a, AFS_EINVAL, "it is no file of less than 2 GiB");
	if (!remote_path(b->c, file, path))
		return admin_refuse(b->a, AFS_ENAMETOOLONG, "its path there is longer than %d letters", BOS_STR_MAX);
	TRY(send_file(b, fd, &st, path));
	cli_say(b->c, "bos: installed file %s\n", file);
	return AFS_OK;
}
int cli_bos_install(struct cli *c) { return words_command(c, "file", "install", install_one); }

static afs_err uninstall_one(struct bos *b, const char *file)
{
	char path[BOS_STR_MAX + 1];
	if (!remote_path(b->c, file, path))
		return admin_refuse(b->a, AFS_ENAMETOOLONG, "its path there is longer than %d letters", BOS_STR_MAX);
	struct bos_uninstall_in in = {XDR_STR_OF(path)};
	struct bos_uninstall_out out;
	TRY(BOS_CALL(b->a, b->conn, uninstall, &in, &out, NULL));
	cli_say(b->c, "bos: uninstalled file %s\n", file);
	return AFS_OK;
}
int cli_bos_uninstall(struct cli *c) { return words_command(c, "file", "uninstall", uninstall_one); }

int cli_bos_prune(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	bool all = cli_has(c, "all");
	struct bos_prune_in in = {(all || cli_has(c, "old") ? BOS_PRUNE_OLD : 0) | (all || cli_has(c, "bak") ? BOS_PRUNE_BAK : 0)
				  | (all || cli_has(c, "core") ? BOS_PRUNE_CORE : 0)};
	struct bos_prune_out out;
	if (!in.flags)
		return cli_misuse(c, "say what to delete: -bak, -old, -core or -all");
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	afs_err err = BOS_CALL(b.a, b.conn, prune, &in, &out, NULL);
	if (err != AFS_OK)
		bos_failed(&b, err, "cannot delete old files");
	return b.status;
}

int cli_bos_exec(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	struct bos_exec_in in = {XDR_STR_OF(cli_value(c, "cmd"))};
	struct bos_exec_out out;
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	afs_err err = BOS_CALL(b.a, b.conn, exec, &in, &out, NULL);
	int32_t code = admin_code(b.a);
	/* what the command left is told as a wait status */
	if (err == AFS_EABORTED && code > 0 && code <= 0xffff)
		return cli_fail(c, code & 0x7f ? "the command was ended by signal %d" : "the command ended with status %d",
			code & 0x7f ? code & 0x7f : code >> 8);
	if (err != AFS_OK)
		bos_failed(&b, err, "cannot run the command");
	return b.status;
}

/* --- settings ------------------------------------------------------------------------------------------------- */

int cli_bos_setauth(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	const char *word = cli_value(c, "authrequired");
	struct bos_set_no_auth_flag_in in = {strcmp(word, "off") == 0};
	struct bos_set_no_auth_flag_out out;
	if (!in.flag && strcmp(word, "on") != 0)
		return cli_misuse(c, "-authrequired %s: expected on or off", word);
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	afs_err err = BOS_CALL(b.a, b.conn, set_no_auth_flag, &in, &out, NULL);
	if (err != AFS_OK)
		bos_failed(&b, err, "cannot set whether callers must prove themselves");
	return b.status;
}

int cli_bos_setcellname(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	struct bos_set_cell_name_in in = {XDR_STR_OF(cli_value(c, "name"))};
	struct bos_set_cell_name_out out;
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	afs_err err = BOS_CALL(b.a, b.conn, set_cell_name, &in, &out, NULL);
	if (err != AFS_OK)
		bos_failed(&b, err, "cannot set the cell's name");
	return b.status;
}

int cli_bos_setrestart(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	struct bos_set_restart_time_in in = {.type = cli_has(c, "newbinary") ? BOS_RESTART_NEWBIN : BOS_RESTART_GENERAL};
	struct bos_set_restart_time_out out;
	if (cli_has(c, "newbinary") && cli_has(c, "general"))
		return cli_misuse(c, "-general and -newbinary exclude each other");
	if (!bos_time_parse(cli_value(c, "time"), &in.time))
		return cli_misuse(c, "-time %s: expected never, now, or a time such as \"sun 4:00\" or \"5:30 pm\"", cli_value(c, "time"));
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	afs_err err = BOS_CALL(b.a, b.conn, set_restart_time, &in, &out, NULL);
	if (err != AFS_OK)
		bos_failed(&b, err, "cannot set the restart time");
	return b.status;
}

int cli_bos_setrestricted(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	int64_t mode;
	if (!text_int(cli_value(c, "mode"), &mode) || mode < 0 || mode > 1)
		return cli_misuse(c, "-mode %s: expected 0 or 1", cli_value(c, "mode"));
	struct bos_set_restricted_mode_in in = {(int32_t)mode};
	struct bos_set_restricted_mode_out out;
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	afs_err err = BOS_CALL(b.a, b.conn, set_restricted_mode, &in, &out, NULL);
	if (err != AFS_OK)
		bos_failed(&b, err, "cannot set restricted mode");
	return b.status;
}
