/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bos salvage: repair by a salvager that the overseer runs once.  A classic file server is stopped while a
 * partition is repaired, and started again whatever happens; one volume is repaired beside it.
 * Source: bos.md §5. */
#include "cell/cli/bos.h"

#include "cell/admin/volume.h"
#include "cell/base/text.h"
#include "cell/cli/handlers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INSTANCE "salvage-tmp"
enum { POLL_S = 2 };

static bool has_instance(struct bos *b, const char *name)
{
	struct bos_get_instance_info_in in = {XDR_STR_OF(name)};
	struct bos_get_instance_info_out out = {};
	return BOS_CALL(b->a, b->conn, get_instance_info, &in, &out, &b->arena) == AFS_OK;
}

static afs_err set_goal(struct bos *b, const char *name, int32_t goal)
{
	struct bos_set_tstatus_in in = {XDR_STR_OF(name), goal};
	struct bos_set_tstatus_out out;
	return BOS_CALL(b->a, b->conn, set_tstatus, &in, &out, NULL);
}

/* The salvager's own options. */
static void put_options(struct cli *c, struct buf *cmd)
{
	static const char *const options[] = {"parallel", "tmpdir", "orphans"};
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (cli_value(c, options[i]))
			buf_printf(cmd, " -%s %s", options[i], cli_value(c, options[i]));
	if (cli_has(c, "salvagedirs"))
		buf_puts(cmd, " -salvagedirs");
}

/* Runs the command once, and waits until the overseer has forgotten it. */
static afs_err run_once(struct bos *b, const char *cmd)
{
	struct bos_create_bnode_in in = {.type = XDR_STR_OF("cron"), .instance = XDR_STR_OF(INSTANCE), .p1 = XDR_STR_OF(cmd),
		.p2 = XDR_STR_OF("now"), .notifier = XDR_STR_OF("__NONOTIFIER__")};
	struct bos_create_bnode_out out;
	TRY(BOS_CALL(b->a, b->conn, create_bnode, &in, &out, NULL));
	for (;;) {
		struct bos_get_instance_info_in iin = {in.instance};
		struct bos_get_instance_info_out info = {};
		CLEANUP(arena) struct arena arena;
		arena_init(&arena, BOS_ARENA);
		afs_err err = BOS_CALL(b->a, b->conn, get_instance_info, &iin, &info, &arena);
		if (err == AFS_ENOENT)
			return AFS_OK;
		TRY(err);
		sleep(POLL_S);
	}
}

static int fetch_log(struct bos *b)
{
	const char *file = cli_value(b->c, "file");
	if (!file && !cli_has(b->c, "showlog"))
		return CLI_OK;
	FILE *f = file ? fopen(file, "we") : stdout;
	if (!f)
		return cli_fail(b->c, "%s cannot be written: %s", file, strerror(errno));
	if (!file)
		printf("SalvageLog:\n");
	afs_err err = bos_log(b, "SalvageLog", f);
	if (file && fclose(f) != 0)
		return cli_fail(b->c, "%s cannot be written: %s", file, strerror(errno));
	if (err != AFS_OK)
		bos_failed(b, err, "cannot get the salvager's log");
	return b->status;
}

/* Puts the command line together; *stops: the file server must not run meanwhile. */
static int command_line(struct bos *b, bool dafs, struct buf *cmd, bool *stops)
{
	struct cli *c = b->c;
	int32_t part;
	const char *partition = cli_value(c, "partition"), *volume = cli_value(c, "volume");
	if (partition && !admin_partition(partition, &part))
		return cli_misuse(c, "-partition %s: expected a partition such as a or /vicepa", partition);
	*stops = !volume;
	if (volume) {
		uint32_t id;
		struct nvldbentry e;
		if (!volume_is_number(volume, &id)) {
			afs_err err = vldb_find(b->a, volume, &e);
			if (err != AFS_OK)
				return suite_fail(c, b->a, err, "volume %s", volume);
			id = e.volumeId[vldb_type_of(&e, volume)];
		}
		buf_printf(cmd, dafs ? "/usr/afs/bin/salvageserver -client" : "/usr/afs/bin/salvager");
		buf_printf(cmd, " %s %u", PARTNAME(part), id);
	} else {
		buf_printf(cmd, dafs ? "/usr/afs/bin/dasalvager -force" : "/usr/afs/bin/salvager -force");
		if (partition)
			buf_printf(cmd, " %s", PARTNAME(part));
	}
	put_options(c, cmd);
	if (cmd->err || cmd->len > BOS_STR_MAX)
		return cli_fail(c, "the salvager's command would be longer than %d letters", BOS_STR_MAX);
	return CLI_OK;
}

int cli_bos_salvage(struct cli *c)
{
	CLEANUP(bos) struct bos b = {};
	CLEANUP(buf) struct buf cmd = {};
	bool stops = false;
	if (cli_has(c, "volume") && !cli_has(c, "partition"))
		return cli_misuse(c, "-volume needs -partition");
	if (!cli_has(c, "partition") != cli_has(c, "all"))
		return cli_misuse(c, "give a -partition, or -all for the whole server");
	int status = bos_begin(&b, c);
	if (status != CLI_OK)
		return status;
	bool dafs = has_instance(&b, "dafs");
	const char *fs = dafs ? "dafs" : "fs";
	status = command_line(&b, dafs, &cmd, &stops);
	if (status != CLI_OK)
		return status;
	if (stops && dafs && !cli_has(c, "forceDAFS"))
		return cli_misuse(c, "a demand-attach file server repairs volumes by itself; -forceDAFS stops it all the same");
	afs_err err = AFS_OK;
	if (stops) {
		struct bos_wait_all_in in;
		struct bos_wait_all_out out;
		printf("bos: shutting down '%s'.\n", fs);
		err = set_goal(&b, fs, BOS_SHUTDOWN);
		if (err == AFS_OK)
			err = BOS_CALL(b.a, b.conn, wait_all, &in, &out, NULL);
		if (err != AFS_OK) {
			bos_failed(&b, err, "cannot stop %s", fs);
			return b.status;
		}
	}
	printf("Starting salvage.\n");
	err = run_once(&b, cmd.data);
	if (err == AFS_OK) {
		printf("bos: salvage completed\n");
		status = fetch_log(&b);
	} else {
		bos_failed(&b, err, "cannot salvage");
	}
	if (stops) {
		printf("bos: restarting %s.\n", fs);
		err = set_goal(&b, fs, BOS_RUNNING);
		if (err != AFS_OK)
			bos_failed(&b, err, "cannot start %s again", fs);
	}
	return b.status ? b.status : status;
}
