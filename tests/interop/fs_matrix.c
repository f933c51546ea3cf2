/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Every call of RXAFS by every kind of caller with every set of rights: what came back, and what it did.
 *
 *   fs_matrix -s ADDRESS -V VOLUME -c CELL -u USER:PASSWORD -a ADMIN:PASSWORD [-g GROUP] -d DIR
 *
 * USER is an ordinary user, ADMIN a member of system:administrators.  GROUP has this machine's address
 * as its member.  Tickets are kept in DIR.  Each line of output is a caller, rights, a call, the
 * abort code and the effect on what it was done to: the same program against two servers must print
 * the same.  VOLUME's root directory is used and left as it was. */
#include "cell/keys/keys.h"
#include "cell/proto/fs.h"
#include "rx/io/port.h"
#include "rx/sec/rxkad.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RPC_WANT_STUBS
#define RPC_PREFIX fs
#define RPC_ROWS "cell/proto/fs.rpc"
#include "rx/xdr/iface_pass.h"
#include "tests/lib/meek_cm.h"

/* --- callers ------------------------------------------------------------------------------------- */

enum { ANON, USER, ADMIN, CALLERS };
static struct rpc_conn *conns[CALLERS];
static const char *user, *group;
static uint32_t volume;
static struct arena arena;
static int32_t code; /* of the last call */

static void die(const char *what, afs_err err)
{
	fprintf(stderr, "fs_matrix: %s: %s (code %d)\n", what, afs_err_text(err), code);
	exit(1);
}

static const struct rpc_proc *proc_of(unsigned op) { return &fs_iface.procs[op]; }

static afs_err call(int who, unsigned op, const void *in, void *out)
{
	struct rpc_result res = {.arena = &arena};
	arena_fini(&arena);
	afs_err err = rpc_invoke(conns[who], proc_of(op), in, out, &res);
	code = res.code;
	if (err != AFS_OK && !res.code)
		die(proc_of(op)->name, err);
	return err;
}
#define CALL(who, fn, ...)                                                                         \
	call((who), fs_op_##fn, &(struct fs_##fn##_in)__VA_ARGS__, memset(&out.fn, 0, sizeof(out.fn)))

static union {
#define RPC(op, wire, fn, shape, need, effect) struct fs_##fn##_out fn;
#include "cell/proto/fs.rpc"
#undef RPC
} out;

static void must(afs_err err, const char *what)
{
	if (err != AFS_OK)
		die(what, err);
}

static afs_err store(int who, struct AFSFid fid, uint32_t mask, uint32_t mode, const char *text)
{
	struct fs_store_data64_in in = {.Fid = fid, .InStatus = {.Mask = mask, .UnixModeBits = mode},
		.Length = strlen(text), .FileLength = strlen(text)};
	struct rpc_call *c;
	struct rpc_result res = {.arena = &arena};
	arena_fini(&arena);
	must(rpc_begin(conns[who], proc_of(fs_op_store_data64), &in, &c), "StoreData64");
	(void)!(rpc_write(c, text, strlen(text)) == AFS_OK); /* the end tells */
	afs_err err = rpc_end(c, &out.store_data64, &res);
	code = res.code;
	return err;
}

static afs_err fetch(int who, struct AFSFid fid)
{
	struct fs_fetch_data64_in in = {.Fid = fid, .Len = 100};
	struct rpc_call *c;
	struct rpc_result res = {.arena = &arena};
	arena_fini(&arena);
	must(rpc_begin(conns[who], proc_of(fs_op_fetch_data64), &in, &c), "FetchData64");
	uint64_t n = 0;
	uint8_t bytes[100];
	if (rpc_read_u64(c, &n) == AFS_OK && n <= sizeof(bytes))
		(void)!(rpc_read(c, bytes, n) == AFS_OK); /* likewise */
	afs_err err = rpc_end(c, &out.fetch_data64, &res);
	code = res.code;
	return err;
}

/* --- what is acted on ------------------------------------------------------------------------------ */

static const struct AFSFid root = {0, 1, 1};
static struct stage { /* of one line */
	struct AFSFid dir, other, own, link, sub, top;
} s;
static unsigned serial;

static struct xdr_str name_of(const char *n) { return XDR_STR_OF(n); }
static void set_acl(int who, struct AFSFid dir, const char *text)
{
	must(CALL(who, old_store_acl, {.Fid = dir, .AccessList = {(const uint8_t *)text, (uint32_t)strlen(text) + 1}}), "StoreACL");
}

static struct AFSFid make_file(int who, struct AFSFid dir, const char *name)
{
	must(CALL(who, create_file, {.DirFid = dir, .Name = name_of(name), .InStatus = {.Mask = FS_SET_MODE, .UnixModeBits = 0644}}), "CreateFile");
	struct AFSFid fid = out.create_file.OutFid;
	must(store(who, fid, 0, 0, "content"), "StoreData64");
	return fid;
}
static struct AFSFid make_dir(int who, struct AFSFid dir, const char *name)
{
	must(CALL(who, make_dir, {.DirFid = dir, .Name = name_of(name), .InStatus = {.Mask = FS_SET_MODE, .UnixModeBits = 0755}}), "MakeDir");
	return out.make_dir.OutFid;
}

static const struct kind {
	const char *name;
	int who;           /* who calls */
	const char *acl;   /* text form, with U, G and R for user, group and rights */
	bool few;          /* not every set of rights */
	bool volume_owner;
} kinds[] = {
	{"user", USER, "2\n0\nsystem:administrators\t127\nU\tR\n", false, false},
	{"anonymous", ANON, "2\n0\nsystem:administrators\t127\nsystem:anyuser\tR\n", false, false},
	{"authuser", USER, "2\n0\nsystem:administrators\t127\nsystem:authuser\tR\n", true, false},
	{"negative", USER, "2\n1\nsystem:administrators\t127\nU\t127\nU\tR\n", true, false},
	{"negative-any", USER, "2\n1\nsystem:administrators\t127\nU\t127\nsystem:anyuser\tR\n", true, false},
	{"volume-owner", USER, "2\n0\nsystem:administrators\t127\nU\tR\n", true, true},
	{"admin-no-entry", ADMIN, "1\n0\nU\tR\n", true, false},
	{"ip-group", ANON, "2\n0\nsystem:administrators\t127\nG\tR\n", true, false},
	{"ip-group-user", USER, "2\n0\nsystem:administrators\t127\nG\tR\n", true, false},
};

static void acl_text(char to[512], const char *form, uint32_t rights)
{
	size_t n = 0;
	for (; *form && n < 400; form++)
		switch (*form) {
		case 'U': n += (size_t)snprintf(to + n, 100, "%s", user); break;
		case 'G': n += (size_t)snprintf(to + n, 100, "%s", group ? group : ""); break;
		case 'R': n += (size_t)snprintf(to + n, 100, "%u", rights); break;
		default: to[n++] = *form; break;
		}
	to[n] = 0;
}

static void prepare(const struct kind *k, uint32_t rights)
{
	char name[32], text[512];
	struct AFSFid r = {volume, root.Vnode, root.Unique};
	snprintf(name, sizeof(name), "m%x.%u", (unsigned)getpid(), ++serial);
	s.top = r;
	s.dir = make_dir(ADMIN, r, name);
	snprintf(text, sizeof(text), "3\n0\nsystem:administrators\t127\nsystem:anyuser\t127\n%s\t127\n", user);
	set_acl(ADMIN, s.dir, text);
	s.other = make_file(k->who == ADMIN ? USER : ADMIN, s.dir, "other");
	s.own = make_file(k->who, s.dir, "own");
	s.sub = make_dir(ADMIN, s.dir, "sub");
	must(CALL(ADMIN, symlink, {.DirFid = s.dir, .Name = name_of("link"), .LinkContents = name_of("target"),
		.InStatus = {.Mask = FS_SET_MODE, .UnixModeBits = 0755}}), "Symlink");
	s.link = out.symlink.OutFid;
	acl_text(text, k->acl, rights);
	set_acl(ADMIN, s.dir, text);
}

static void clean(void)
{
	char name[32];
	static const char *const files[] = {"other", "own", "link", "new", "new2", "mount", "moved"};
	static const char *const dirs[] = {"sub", "newdir"};
	snprintf(name, sizeof(name), "m%x.%u", (unsigned)getpid(), serial);
	set_acl(ADMIN, s.dir, "1\n0\nsystem:administrators\t127\n");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		(void)!(CALL(ADMIN, remove_file, {.DirFid = s.dir, .Name = name_of(files[i])}) == AFS_OK); /* may not be there */
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		(void)!(CALL(ADMIN, remove_dir, {.DirFid = s.dir, .Name = name_of(dirs[i])}) == AFS_OK); /* likewise */
	must(CALL(ADMIN, remove_dir, {.DirFid = s.top, .Name = name_of(name)}), "RemoveDir");
}

/* --- the calls --------------------------------------------------------------------------------------- */

enum act {
	STAT_DIR, STAT_OTHER, STAT_OWN, STAT_LINK, BULK_OTHER, INLINE_OTHER, READ_DIR, READ_OTHER, READ_OWN, READ_LINK, ACL_DIR, ACL_OTHER,
	ACL_LINK, STORE_OTHER, STORE_OWN, STORE_OTHER_SETUID, STORE_OWN_SETUID, STORE_DIR, CHMOD_OTHER, CHMOD_OWN, CHMOD_DIR, CHMOD_LINK,
	SETUID_OTHER, SETUID_OWN, SETUID_DIR, CHOWN_OTHER, CHOWN_OWN, CHOWN_DIR, CHGRP_OWN, CHOWN_SAME, STORE_ACL_DIR, STORE_ACL_FILE, CREATE,
	CREATE_SETUID, MAKE_DIR, SYMLINK, MOUNT_POINT, LINK_OTHER, LINK_OWN, REMOVE, REMOVE_LINK, REMOVE_DIR, RENAME, RENAME_OVER, MOVE_DOWN,
	LOCK_READ_OTHER, LOCK_WRITE_OTHER, LOCK_WRITE_OWN, EXTEND, RELEASE, READ_OWN_000, READ_OTHER_000, READ_OTHER_100, READ_OTHER_200,
	STORE_OWN_444, STORE_OTHER_444, VOLUME_STATUS, SET_VOLUME, TIME, STATISTICS64, ACTS
};
static const char *const act_names[ACTS] = {
	"stat dir", "stat other", "stat own", "stat link", "bulk other", "inline other", "read dir", "read other", "read own", "read link",
	"acl dir", "acl other", "acl link", "store other", "store own", "store+setuid other", "store+setuid own", "store dir", "chmod other",
	"chmod own", "chmod dir", "chmod link", "setuid other", "setuid own", "setuid dir", "chown other", "chown own", "chown dir", "chgrp own",
	"chown same", "store acl dir", "store acl file", "create", "create setuid", "mkdir", "symlink", "mount point", "link other", "link own",
	"remove", "remove link", "rmdir", "rename", "rename over", "move down", "rlock other", "wlock other", "wlock own", "extend", "release",
	"read own 000", "read other 000", "read other 100", "read other 200", "store own 444", "store other 444", "volume status",
	"set volume", "time", "statistics64"};

static afs_err set_status(int who, struct AFSFid fid, uint32_t mask, uint32_t mode, uint32_t owner)
{
	return CALL(who, store_status, {.Fid = fid, .InStatus = {.Mask = mask, .UnixModeBits = mode, .Owner = owner, .Group = owner}});
}

static void as_admin(enum act a)
{
	uint32_t mode = a == READ_OWN_000 || a == READ_OTHER_000 ? 0 : a == READ_OTHER_100 ? 0100 : a == READ_OTHER_200 ? 0200 : 0444;
	if (a >= READ_OWN_000 && a <= STORE_OTHER_444)
		must(set_status(ADMIN, a == READ_OWN_000 || a == STORE_OWN_444 ? s.own : s.other, FS_SET_MODE, mode, 0), "StoreStatus");
}

static afs_err act(int who, enum act a)
{
	const struct AFSStoreStatus mode = {.Mask = FS_SET_MODE, .UnixModeBits = 0644}, none = {0};
	struct AFSFid two[] = {s.dir, s.other};
	switch (a) {
	case STAT_DIR: return CALL(who, fetch_status, {s.dir});
	case STAT_OTHER: return CALL(who, fetch_status, {s.other});
	case STAT_OWN: return CALL(who, fetch_status, {s.own});
	case STAT_LINK: return CALL(who, fetch_status, {s.link});
	case BULK_OTHER: return CALL(who, bulk_status, {{two, 2}});
	case INLINE_OTHER: return CALL(who, inline_bulk_status, {{two, 2}});
	case READ_DIR: return fetch(who, s.dir);
	case READ_OTHER: case READ_OTHER_000: case READ_OTHER_100: case READ_OTHER_200: return fetch(who, s.other);
	case READ_OWN: case READ_OWN_000: return fetch(who, s.own);
	case READ_LINK: return fetch(who, s.link);
	case ACL_DIR: return CALL(who, fetch_acl, {s.dir});
	case ACL_OTHER: return CALL(who, fetch_acl, {s.other});
	case ACL_LINK: return CALL(who, fetch_acl, {s.link});
	case STORE_OTHER: case STORE_OTHER_444: return store(who, s.other, 0, 0, "changed");
	case STORE_OWN: case STORE_OWN_444: return store(who, s.own, 0, 0, "changed");
	case STORE_OTHER_SETUID: return store(who, s.other, FS_SET_MODE, 04755, "changed");
	case STORE_OWN_SETUID: return store(who, s.own, FS_SET_MODE, 04755, "changed");
	case STORE_DIR: return store(who, s.sub, 0, 0, "changed");
	case CHMOD_OTHER: return set_status(who, s.other, FS_SET_MODE, 0600, 0);
	case CHMOD_OWN: return set_status(who, s.own, FS_SET_MODE, 0600, 0);
	case CHMOD_DIR: return set_status(who, s.dir, FS_SET_MODE, 0700, 0);
	case CHMOD_LINK: return set_status(who, s.link, FS_SET_MODE, 0644, 0);
	case SETUID_OTHER: return set_status(who, s.other, FS_SET_MODE, 04755, 0);
	case SETUID_OWN: return set_status(who, s.own, FS_SET_MODE, 04755, 0);
	case SETUID_DIR: return set_status(who, s.dir, FS_SET_MODE, 06755, 0);
	case CHOWN_OTHER: return set_status(who, s.other, FS_SET_OWNER, 0, 77);
	case CHOWN_OWN: return set_status(who, s.own, FS_SET_OWNER, 0, 77);
	case CHOWN_DIR: return set_status(who, s.dir, FS_SET_OWNER, 0, 77);
	case CHGRP_OWN: return set_status(who, s.own, FS_SET_GROUP, 0, 77);
	case CHOWN_SAME: must(CALL(ADMIN, fetch_status, {s.dir}), "FetchStatus"); return set_status(who, s.dir, FS_SET_OWNER, 0, out.fetch_status.OutStatus.Owner);
	case STORE_ACL_DIR: case STORE_ACL_FILE: {
		static const char text[] = "1\n0\nsystem:administrators\t127\n";
		return CALL(who, old_store_acl, {.Fid = a == STORE_ACL_DIR ? s.dir : s.other, .AccessList = {(const uint8_t *)text, sizeof(text)}});
	}
	case CREATE: return CALL(who, create_file, {.DirFid = s.dir, .Name = name_of("new"), .InStatus = mode});
	case CREATE_SETUID: return CALL(who, create_file, {.DirFid = s.dir, .Name = name_of("new"), .InStatus = {.Mask = FS_SET_MODE, .UnixModeBits = 06755}});
	case MAKE_DIR: return CALL(who, make_dir, {.DirFid = s.dir, .Name = name_of("newdir"), .InStatus = none});
	case SYMLINK: return CALL(who, symlink, {.DirFid = s.dir, .Name = name_of("new"), .LinkContents = name_of("x"), .InStatus = none});
	case MOUNT_POINT: return CALL(who, symlink, {.DirFid = s.dir, .Name = name_of("mount"), .LinkContents = name_of("#root.cell."), .InStatus = mode});
	case LINK_OTHER: return CALL(who, link, {s.dir, name_of("new"), s.other});
	case LINK_OWN: return CALL(who, link, {s.dir, name_of("new"), s.own});
	case REMOVE: return CALL(who, remove_file, {s.dir, name_of("own")});
	case REMOVE_LINK: return CALL(who, remove_file, {s.dir, name_of("link")});
	case REMOVE_DIR: return CALL(who, remove_dir, {s.dir, name_of("sub")});
	case RENAME: return CALL(who, rename, {s.dir, name_of("own"), s.dir, name_of("moved")});
	case RENAME_OVER: return CALL(who, rename, {s.dir, name_of("own"), s.dir, name_of("other")});
	case MOVE_DOWN: return CALL(who, rename, {s.dir, name_of("sub"), s.sub, name_of("x")});
	case LOCK_READ_OTHER: return CALL(who, set_lock, {s.other, FS_LOCK_READ});
	case LOCK_WRITE_OTHER: return CALL(who, set_lock, {s.other, FS_LOCK_WRITE});
	case LOCK_WRITE_OWN: return CALL(who, set_lock, {s.own, FS_LOCK_WRITE});
	case EXTEND: must(CALL(ADMIN, fetch_status, {s.dir}), "FetchStatus"); return CALL(who, extend_lock, {s.other});
	case RELEASE: return CALL(who, release_lock, {s.other});
	case VOLUME_STATUS: return CALL(who, get_volume_status, {volume});
	case SET_VOLUME: return CALL(who, set_volume_status, {.Volume = volume, .Name = name_of(""), .OfflineMsg = name_of(""), .Motd = name_of("")});
	case TIME: return CALL(who, get_time, {});
	case STATISTICS64: return CALL(who, get_statistics64, {16});
	case ACTS: break;
	}
	return AFS_OK;
}

static void tell_status(const char *what, struct AFSFid fid)
{
	if (CALL(ADMIN, fetch_status, {fid}) != AFS_OK) {
		printf(" %s:gone(%d)", what, code);
		return;
	}
	const struct AFSFetchStatus *st = &out.fetch_status.OutStatus;
	printf(" %s:%o,o%d,g%d,n%u,l%u,v%u,k%d", what, st->UnixModeBits, (int)st->Owner, (int)st->Group, st->LinkCount, st->Length, st->DataVersion,
		(int)st->lockCount);
}

static void one(const struct kind *k, const char *letters, uint32_t rights, enum act a)
{
	prepare(k, rights);
	as_admin(a);
	afs_err err = act(k->who, a);
	int32_t got = err == AFS_OK ? 0 : code;
	printf("%s %s %s: %d", k->name, letters, act_names[a], got);
	if (err == AFS_OK) {
		const struct AFSFetchStatus *st = a <= STAT_LINK ? &out.fetch_status.OutStatus : NULL;
		if (a == INLINE_OTHER)
			printf(" each %u %u", out.inline_bulk_status.Statuses.v[0].errorCode, out.inline_bulk_status.Statuses.v[1].errorCode);
		if (a == CREATE || a == CREATE_SETUID)
			st = &out.create_file.OutFidStatus;
		if (a == MAKE_DIR)
			st = &out.make_dir.OutFidStatus;
		if (st)
			printf(" access %x %x type %u mode %o", st->CallerAccess, st->AnonymousAccess, st->FileType, st->UnixModeBits);
	}
	tell_status("dir", s.dir);
	tell_status("other", s.other);
	tell_status("own", s.own);
	printf("\n");
	clean();
}

/* --- who they are ---------------------------------------------------------------------------------- */

static const char *dir_of_tickets, *cell;
static struct rpc_port *port;

static struct rpc_conn *connect_as(struct rx_addr to, const char *who, const char *password)
{
	struct rpc_conn_config config = {.peer = to, .iface = &fs_iface, .dead_ns = SEC(60)};
	if (who) {
		CLEANUP(buf) struct buf why = {0};
		CLEANUP(str) char *cc = mem_printf("FILE:%s/cc.%s", dir_of_tickets, who);
		CLEANUP(keys_token) struct keys_token token = {0};
		struct keys_login login = {.principal = who, .password = password, .ccache = cc};
		struct keys_aklog want = {.cell = cell, .ccache = cc};
		afs_err err = keys_login(&login, &why);
		if (err == AFS_OK)
			err = keys_aklog(&want, &token, &why);
		if (err != AFS_OK) {
			fprintf(stderr, "fs_matrix: %s: %.*s\n", who, (int)why.len, why.data ? (const char *)why.data : "");
			die("ticket", err);
		}
		config.sec = rxkad_client_new(&token.kad, RX_LEVEL_CRYPT);
	}
	struct rpc_conn *c;
	must(rpc_conn_new(port, &config, &c), "connection");
	return c;
}

int main(int argc, char **argv)
{
	struct rx_addr to = {.port = 7000};
	char *u = NULL, *ad = NULL;
	for (int c; (c = getopt(argc, argv, "s:V:c:u:a:g:d:")) != -1;) {
		struct in_addr in;
		switch (c) {
		case 's':
			if (inet_pton(AF_INET, optarg, &in) != 1)
				return 2;
			to.ip = ntohl(in.s_addr);
			break;
		case 'V': volume = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'c': cell = optarg; break;
		case 'u': u = optarg; break;
		case 'a': ad = optarg; break;
		case 'g': group = optarg; break;
		case 'd': dir_of_tickets = optarg; break;
		default: return 2;
		}
	}
	if (!to.ip || !volume || !cell || !u || !ad || !dir_of_tickets || !strchr(u, ':') || !strchr(ad, ':')) {
		fprintf(stderr, "usage: fs_matrix -s ADDRESS -V VOLUME -c CELL -u USER:PASSWORD -a ADMIN:PASSWORD [-g GROUP] -d DIR\n");
		return 2;
	}
	arena_init(&arena, 1 << 20);
	struct rpc_service service = meek_service();
	struct rpc_port_config config = {.name = "matrix", .services = &service, .service_count = 1, .workers = rpc_workers_new("matrix", 2),
		.pool = rx_buf_pool_new(16 << 20)};
	must(rpc_port_open(&config, &port), "port");
	char *colon = strchr(u, ':');
	*colon = 0;
	user = u;
	conns[USER] = connect_as(to, u, colon + 1);
	colon = strchr(ad, ':');
	*colon = 0;
	conns[ADMIN] = connect_as(to, ad, colon + 1);
	conns[ANON] = connect_as(to, NULL, NULL);

	static const struct {
		const char *letters;
		uint32_t rights;
		bool few;
	} sets[] = {{"none", 0, true}, {"l", 8, false}, {"r", 1, false}, {"rl", 9, true}, {"w", 2, true}, {"i", 4, false}, {"li", 12, true}, {"d", 16, false}, {"k", 32, false}, {"lik", 44, false}, {"a", 64, false}, {"ia", 68, false},
		{"lid", 28, true}, {"rlidwk", 63, true}, {"all", 127, false}};
	struct AFSFid r = {volume, 1, 1};
	must(CALL(USER, fetch_status, {r}), "FetchStatus");
	int32_t user_id = -1;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (strstr(kinds[k].name, "ip-") && !group)
			continue;
		if (kinds[k].volume_owner) {
			prepare(&kinds[k], 127);
			must(CALL(ADMIN, fetch_status, {s.own}), "FetchStatus");
			user_id = (int32_t)out.fetch_status.OutStatus.Owner;
			clean();
			must(set_status(ADMIN, r, FS_SET_OWNER, 0, (uint32_t)user_id), "chown of the volume");
		}
		for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
			for (int a = 0; a < ACTS && (sets[i].few || !kinds[k].few); a++)
				one(&kinds[k], sets[i].letters, sets[i].rights, (enum act)a);
		if (kinds[k].volume_owner)
			must(set_status(ADMIN, r, FS_SET_OWNER, 0, 0), "chown of the volume");
	}
	for (int i = 0; i < CALLERS; i++)
		rpc_conn_unref(conns[i]);
	rpc_port_close(port);
	return 0;
}
