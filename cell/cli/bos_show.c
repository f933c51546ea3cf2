/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bos: what shows a server, in the words of stock bos. */
#include "cell/cli/bos.h"

#include "cell/base/text.h"
#include "cell/cli/handlers.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define CANONICAL_BIN "/usr/afs/bin"
enum { LIST_MAX = 1000 }; /* more of a kind than any server has: a list that long does not end */

/* --- times ------------------------------------------------------------------------------------------------ */

static const char *const days[] = {"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"};

static bool day_word(const char *word, size_t n, int32_t *day)
{
	for (size_t i = 0; i < ARRAY_SIZE(days); i++)
		if (n >= 3 && n <= strlen(days[i]) && strncasecmp(days[i], word, n) == 0) {
			*day = (int32_t)i;
			return true;
		}
	return false;
}

/* "4:00", "5:30:10", with " am" or " pm" after it. */
static bool clock_words(const char *s, struct bozo_netKTime *t)
{
	unsigned hour, min, sec = 0;
	int used = 0;
	if (sscanf(s, "%2u:%2u%n", &hour, &min, &used) != 2)
		return false;
	s += used;
	if (*s == ':') {
		if (sscanf(s, ":%2u%n", &sec, &used) != 1)
			return false;
		s += used;
		t->mask |= BOS_KT_SEC;
	}
	while (isspace((unsigned char)*s))
		s++;
	bool am = strcasecmp(s, "am") == 0, pm = strcasecmp(s, "pm") == 0;
	if (*s && !am && !pm)
		return false;
	if ((am || pm) && (hour < 1 || hour > 12))
		return false;
	if (am || pm)
		hour = hour % 12 + (pm ? 12 : 0);
	t->mask |= BOS_KT_HOUR | BOS_KT_MIN;
	t->hour = (int32_t)hour;
	t->min = (int32_t)min;
	t->sec = (int32_t)sec;
	return hour < 24 && min < 60 && sec < 60;
}

bool bos_time_parse(const char *text, struct bozo_netKTime *out)
{
	*out = (struct bozo_netKTime){};
	while (isspace((unsigned char)*text))
		text++;
	if (strcasecmp(text, "never") == 0 || strcasecmp(text, "now") == 0) {
		out->mask = strcasecmp(text, "now") == 0 ? BOS_KT_NOW : BOS_KT_NEVER;
		return true;
	}
	size_t n = strcspn(text, " \t");
	if (day_word(text, n, &out->day)) {
		out->mask = BOS_KT_DAY | BOS_KT_SEC; /* as stock bos has it */
		text += n;
		while (isspace((unsigned char)*text))
			text++;
	}
	return clock_words(text, out);
}

const char *bos_time_text(char *out, const struct bozo_netKTime *t)
{
	if (t->mask & BOS_KT_NEVER)
		return strcpy(out, "never");
	if (t->mask & BOS_KT_NOW)
		return strcpy(out, "now");
	char *p = out, *end = out + 64;
	p += snprintf(p, (size_t)(end - p), "at");
	if ((t->mask & BOS_KT_DAY) && t->day >= 0 && t->day < (int32_t)ARRAY_SIZE(days))
		p += snprintf(p, (size_t)(end - p), " %.3s", days[t->day]);
	if (t->mask & BOS_KT_HOUR)
		p += snprintf(p, (size_t)(end - p), " %d", t->hour % 12 ? t->hour % 12 : 12);
	if (t->mask & BOS_KT_MIN)
		p += snprintf(p, (size_t)(end - p), ":%02d", t->min);
	if ((t->mask & BOS_KT_SEC) && t->sec)
		p += snprintf(p, (size_t)(end - p), ":%02d", t->sec);
	if (t->mask & BOS_KT_HOUR)
		snprintf(p, (size_t)(end - p), t->hour >= 12 ? " pm" : " am");
	return out;
}

/* --- status ------------------------------------------------------------------------------------------------- */

/* A decoded string that a person is to read; a server's bytes are not believed. */
static const char *text_of(struct xdr_str s) { return s.p ? s.p : ""; }

static const char *state_text(int32_t status)
{
	static const char *const texts[] = {"shutdown", "running normally", "shutting down", "starting up"};
	return status >= 0 && status < (int32_t)ARRAY_SIZE(texts) ? texts[status] : "in a state of its own";
}

static void print_last_error(struct bos *b, const struct bozo_status *s, struct xdr_str instance)
{
	struct bos_get_instance_strings_in in = {instance};
	struct bos_get_instance_strings_out out = {};
	printf("    Last error exit at %s, ", CTIME(s->lastErrorExit));
	if (BOS_CALL(b->a, b->conn, get_instance_strings, &in, &out, &b->arena) == AFS_OK && out.error.len)
		printf("by %s, ", text_of(out.error));
	if (s->errorSignal == SIGTERM)
		printf("due to shutdown request\n");
	else if (s->errorSignal)
		printf("due to signal %d\n", s->errorSignal);
	else
		printf("by exiting with code %d\n", s->errorCode);
}

/* Parameters from 0 on, and the notifier; `each` for each. */
static void print_parms(struct bos *b, struct xdr_str instance)
{
	for (uint32_t i = 0; i < LIST_MAX; i++) {
		struct bos_get_instance_parm_in in = {instance, i};
		struct bos_get_instance_parm_out out = {};
		if (BOS_CALL(b->a, b->conn, get_instance_parm, &in, &out, &b->arena) != AFS_OK)
			break;
		printf("    Command %u is '%s'\n", i + 1, text_of(out.parm));
	}
	struct bos_get_instance_parm_in in = {instance, BOS_PARM_NOTIFIER};
	struct bos_get_instance_parm_out out = {};
	if (BOS_CALL(b->a, b->conn, get_instance_parm, &in, &out, &b->arena) == AFS_OK)
		printf("    Notifier  is '%s'\n", text_of(out.parm));
}

static json_t *status_json(const char *name, const struct bos_get_instance_info_out *info, const struct bos_get_status_out *st)
{
	const struct bozo_status *s = &info->status;
	static const char *const states[] = {"shutdown", "running", "shutting_down", "starting_up"};
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:i, s:i, s:i, s:i, s:i, s:i}", "instance", name, "type", text_of(info->type),
		"state", st->status >= 0 && st->status < 4 ? states[st->status] : "unknown", "description", text_of(st->description), "wanted",
		s->goal == BOS_RUNNING, "enabled", s->fileGoal == BOS_RUNNING, "error_stop", (s->flags & BOS_ERROR_STOP) != 0, "core",
		(s->flags & BOS_HAS_CORE) != 0, "started", s->procStartTime, "starts", s->procStarts, "last_exit", s->lastAnyExit,
		"last_error_exit", s->lastErrorExit, "error_code", s->errorCode, "error_signal", s->errorSignal);
}

static afs_err show_instance(struct bos *b, struct xdr_str name, bool first, json_t *all)
{
	bool is_long = cli_has(b->c, "long");
	struct bos_get_instance_info_in iin = {name};
	struct bos_get_instance_info_out info = {};
	struct bos_get_status_in sin = {name};
	struct bos_get_status_out st = {};
	TRY(BOS_CALL(b->a, b->conn, get_instance_info, &iin, &info, &b->arena));
	TRY(BOS_CALL(b->a, b->conn, get_status, &sin, &st, &b->arena));
	const struct bozo_status *s = &info.status;
	if (cli_wants_json(b->c)) {
		json_array_append_new(all, status_json(text_of(name), &info, &st));
		return AFS_OK;
	}
	if (is_long && first && (s->flags & BOS_BAD_DIRS))
		printf("Bosserver reports inappropriate access on server directories\n");
	printf("Instance %s, ", text_of(name));
	if (is_long)
		printf("(type is %s) ", text_of(info.type));
	if (s->goal == s->fileGoal)
		printf("%s", s->goal ? "" : "disabled, ");
	else
		printf(s->fileGoal ? "temporarily disabled, " : "temporarily enabled, ");
	if (s->flags & BOS_ERROR_STOP)
		printf("stopped for too many errors, ");
	if (s->flags & BOS_HAS_CORE)
		printf("has core file, ");
	printf("currently %s.\n", state_text(st.status));
	if (st.description.len)
		printf("    Auxiliary status is: %s.\n", text_of(st.description));
	if (!is_long)
		return AFS_OK;
	if (s->procStartTime)
		printf("    Process last started at %s (%d proc starts)\n", CTIME(s->procStartTime), s->procStarts);
	if (s->lastAnyExit)
		printf("    Last exit at %s\n", CTIME(s->lastAnyExit));
	if (s->lastErrorExit)
		print_last_error(b, s, name);
	print_parms(b, name);
	printf("\n");
	return AFS_OK;
}

int cli_bos_status(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	const char *const *names;
	size_t n = cli_values(c, "instance", &names);
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	json_t *all = json_array();
	for (size_t i = 0; i < n; i++) {
		afs_err err = show_instance(&b, XDR_STR_OF(names[i]), i == 0, all);
		if (err != AFS_OK)
			bos_failed(&b, err, "cannot show %s", names[i]);
	}
	for (uint32_t i = 0; !n && i < LIST_MAX; i++) {
		struct bos_enumerate_instance_in in = {i};
		struct bos_enumerate_instance_out out = {};
		afs_err err = BOS_CALL(b.a, b.conn, enumerate_instance, &in, &out, &b.arena);
		if (err == AFS_ERANGE)
			break;
		if (err == AFS_OK)
			err = show_instance(&b, out.name, i == 0, all);
		if (err == AFS_ENOENT)
			continue; /* deleted meanwhile */
		if (err != AFS_OK) {
			bos_failed(&b, err, "cannot list the services of %s", b.server);
			break;
		}
	}
	if (cli_wants_json(c) && b.status == CLI_OK)
		return cli_print_json(c, all);
	json_decref(all);
	return b.status;
}

/* --- lists -------------------------------------------------------------------------------------------------- */

int cli_bos_listusers(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	json_t *all = json_array();
	for (uint32_t i = 0; i < LIST_MAX; i++) {
		struct bos_list_susers_in in = {i};
		struct bos_list_susers_out out = {};
		afs_err err = BOS_CALL(b.a, b.conn, list_susers, &in, &out, &b.arena);
		/* the end is a plain 1 with stock servers, and any code of the server's own ends a list */
		if (err != AFS_OK && admin_code(b.a) > 0 && err != AFS_EACCESS)
			break;
		if (err != AFS_OK) {
			bos_failed(&b, err, "cannot list the superusers of %s", b.server);
			break;
		}
		json_array_append_new(all, json_string(text_of(out.name)));
	}
	if (b.status == CLI_OK && cli_wants_json(c))
		return cli_print_json(c, all);
	if (b.status == CLI_OK) {
		size_t i;
		json_t *name;
		printf("SUsers are: ");
		json_array_foreach(all, i, name)
		{
			printf("%s ", json_string_value(name));
		}
		printf("\n");
	}
	json_decref(all);
	return b.status;
}

int cli_bos_listhosts(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	struct bos_get_cell_name_in nin;
	struct bos_get_cell_name_out name = {};
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	afs_err err = BOS_CALL(b.a, b.conn, get_cell_name, &nin, &name, &b.arena);
	if (err != AFS_OK) {
		bos_failed(&b, err, "cannot get the cell's name from %s", b.server);
		return b.status;
	}
	json_t *hosts = json_array();
	if (!cli_wants_json(c))
		printf("Cell name is %s\n", text_of(name.name));
	for (uint32_t i = 0; i < LIST_MAX; i++) {
		struct bos_get_cell_host_in in = {i};
		struct bos_get_cell_host_out out = {};
		err = BOS_CALL(b.a, b.conn, get_cell_host, &in, &out, &b.arena);
		if (err == AFS_ERANGE)
			break;
		if (err != AFS_OK) {
			bos_failed(&b, err, "cannot list the hosts that %s knows", b.server);
			break;
		}
		json_array_append_new(hosts, json_string(text_of(out.name)));
		if (!cli_wants_json(c))
			printf("    Host %u is %s\n", i + 1, text_of(out.name));
	}
	if (b.status == CLI_OK && cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:s, s:o}", "cell", text_of(name.name), "hosts", hosts));
	json_decref(hosts);
	return b.status;
}

int cli_bos_listkeys(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	int32_t changed = 0;
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	json_t *all = json_array();
	for (uint32_t i = 0; i < LIST_MAX; i++) {
		struct bos_list_keys_in in = {i};
		struct bos_list_keys_out out = {};
		afs_err err = BOS_CALL(b.a, b.conn, list_keys, &in, &out, &b.arena);
		if (err == AFS_ERANGE)
			break;
		if (err != AFS_OK) {
			bos_failed(&b, err, "cannot list the keys of %s", b.server);
			break;
		}
		changed = out.info.mod_sec;
		json_array_append_new(all, json_pack("{s:i, s:I}", "kvno", out.kvno, "checksum", (json_int_t)out.info.keyCheckSum));
		if (cli_wants_json(c))
			continue;
		if (cli_has(c, "showkey")) {
			printf("key %d is '", out.kvno);
			for (size_t k = 0; k < ARRAY_SIZE(out.key.data); k++)
				printf("\\%03o", (unsigned)out.key.data[k] & 0xff);
			printf("'\n");
		} else {
			printf("key %d has cksum %u\n", out.kvno, out.info.keyCheckSum);
		}
	}
	if (b.status == CLI_OK && cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:o, s:i}", "keys", all, "changed", changed));
	json_decref(all);
	if (b.status == CLI_OK && changed)
		printf("Keys last changed on %s.\n", CTIME(changed));
	if (b.status == CLI_OK)
		printf("All done.\n");
	return b.status;
}

/* --- files --------------------------------------------------------------------------------------------------- */

afs_err bos_log(struct bos *b, const char *name, FILE *f)
{
	const struct rpc_proc *proc = &bos_iface.procs[bos_op_get_log];
	struct bos_get_log_in in = {XDR_STR_OF(name)};
	struct bos_get_log_out out;
	struct rpc_call *call;
	afs_err err = rpc_begin(b->conn, proc, &in, &call);
	if (err != AFS_OK)
		return admin_note(b->a, b->conn, proc, err, 0);
	uint64_t total = 0;
	for (;;) {
		const uint8_t *p;
		size_t n;
		if (rpc_read_run(call, 1 << 16, &p, &n) != AFS_OK || !n)
			break; /* rpc_end says why */
		total += n;
		if (total > BOS_LOG_MAX) {
			rpc_cancel(call);
			return admin_refuse(b->a, AFS_EFBIG, "it is larger than %d MiB", BOS_LOG_MAX >> 20);
		}
		for (const uint8_t *q = p; q < p + n;) {
			const uint8_t *nul = memchr(q, 0, (size_t)(p + n - q)), *stop = nul ? nul : p + n;
			fwrite(q, 1, (size_t)(stop - q), f);
			q = nul ? nul + 1 : stop;
		}
	}
	struct rpc_result res = {};
	err = rpc_end(call, &out, &res);
	return admin_note(b->a, b->conn, proc, err, res.code);
}

int cli_bos_getlog(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	const char *name = cli_value(c, "file");
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	if (!cli_wants_json(c)) {
		printf("Fetching log file '%s'...\n", name);
		afs_err err = bos_log(&b, name, stdout);
		if (err != AFS_OK)
			bos_failed(&b, err, "cannot get the log %s", name);
		return b.status;
	}
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return cli_fail(c, "out of memory");
	afs_err err = bos_log(&b, name, f);
	if (fclose(f) != 0)
		err = AFS_ENOMEM;
	json_t *log = err == AFS_OK ? json_stringn(text, size) : NULL;
	free(text);
	if (err != AFS_OK) {
		bos_failed(&b, err, "cannot get the log %s", name);
		return b.status;
	}
	if (!log)
		return cli_fail(c, "the log %s is no UTF-8 text", name);
	return cli_print_json(c, json_pack("{s:s, s:o}", "log", name, "text", log));
}

static void print_date(const char *what, int32_t date, const char *absent, const char *end)
{
	if (date)
		printf("%sdated %s%s", what, CTIME(date), end);
	else
		printf("%s%s", absent, end);
}

int cli_bos_getdate(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	const char *const *files, *dir = cli_value(c, "dir");
	size_t n = cli_values(c, "file", &files);
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	json_t *all = json_array();
	for (size_t i = 0; i < n; i++) {
		CLEANUP(str) char *path = files[i][0] == '/' ? mem_strdup(files[i]) : mem_printf("%s/%s", dir ? dir : CANONICAL_BIN, files[i]);
		struct bos_get_dates_in in = {XDR_STR_OF(path ? path : "")};
		struct bos_get_dates_out out = {};
		afs_err err = BOS_CALL(b.a, b.conn, get_dates, &in, &out, NULL);
		if (err != AFS_OK) {
			bos_failed(&b, err, "cannot get the date of %s", files[i]);
			continue;
		}
		json_array_append_new(all, json_pack("{s:s, s:i, s:i, s:i}", "file", path, "date", out.time, "bak", out.bak, "old", out.old));
		if (cli_wants_json(c))
			continue;
		printf("File %s ", path);
		print_date("", out.time, "does not exist", ", ");
		print_date(".BAK file ", out.bak, "no .BAK file", ", ");
		print_date(".OLD file ", out.old, "no .OLD file", ".\n");
	}
	if (cli_wants_json(c) && b.status == CLI_OK)
		return cli_print_json(c, all);
	json_decref(all);
	return b.status;
}

/* --- settings ------------------------------------------------------------------------------------------------- */

int cli_bos_getrestart(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	char general[64], newbin[64];
	struct bos_get_restart_time_in in = {BOS_RESTART_GENERAL};
	struct bos_get_restart_time_out g = {}, n = {};
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	afs_err err = BOS_CALL(b.a, b.conn, get_restart_time, &in, &g, NULL);
	in.type = BOS_RESTART_NEWBIN;
	if (err == AFS_OK)
		err = BOS_CALL(b.a, b.conn, get_restart_time, &in, &n, NULL);
	if (err != AFS_OK) {
		bos_failed(&b, err, "cannot get the restart times of %s", b.server);
		return b.status;
	}
	bos_time_text(general, &g.time);
	bos_time_text(newbin, &n.time);
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:s, s:s}", "general", general, "new_binaries", newbin));
	printf("Server %s restarts %s\nServer %s restarts for new binaries %s\n", b.server, general, b.server, newbin);
	return CLI_OK;
}

int cli_bos_getrestricted(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	struct bos_get_restricted_mode_in in;
	struct bos_get_restricted_mode_out out = {};
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	afs_err err = BOS_CALL(b.a, b.conn, get_restricted_mode, &in, &out, NULL);
	if (err != AFS_OK) {
		bos_failed(&b, err, "cannot get restricted mode");
		return b.status;
	}
	if (cli_wants_json(c))
		return cli_print_json(c, json_pack("{s:b}", "restricted", out.mode != 0));
	printf("Restricted mode is %s\n", out.mode ? "on" : "off");
	return CLI_OK;
}
