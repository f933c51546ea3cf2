/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The cache manager, for the rest of afscell.
 *
 * One struct client is one cache manager: its own UUID, its own UDP port, its own cache directory.
 * The order of life:
 *
 *   client_new(&config, &ports, &c)
 *   client_service(c, &service)     the RXAFSCB service, to be offered on the client's port
 *   rpc_port_open(..., &port)       with that service
 *   client_start(c, port)           every call of the client leaves from this port
 *   client_mount(c, dir)            optional: cm/ serves verbs without a mount too
 *   ...
 *   client_unmount(c), client_stop(c)   stores what is dirty, gives callbacks up
 *   rpc_port_close(port)
 *   client_free(c)
 *
 * Verbs act for a local user (uid), with the token that he has for the cell in question, else as
 * anonymous.  Every verb may wait for servers.  All are safe from any thread. */
#pragma once
#include "cell/proto/fid.h"
#include "client/ports.h"
#include "rx/rpc/rpc.h"
#include "rx/sec/token.h"

#include <sys/types.h>

struct client;

struct client_cell {
	const char *name;         /* in lower case */
	const struct rx_addr *vl; /* its VL servers, in order of preference */
	size_t vl_count;
};

struct client_config {
	const struct client_cell *cells; /* the first is the local cell; all is copied */
	size_t cell_count;
	const char *cache_dir;     /* made when missing; belongs to one client at a time; NULL: in memory */
	uint64_t cache_bytes;      /* hard bound of what the cache holds on disk; at least 16 MiB */
	enum rx_sec_level level;   /* of connections with a token */
	enum rx_sec_level level_here; /* the same, to servers on the loopback network */
	unsigned vnodes_max;       /* status entries kept when nobody uses them; 0: default */
	int64_t dead_ns;           /* a server that is silent for this long is down; 0: default */
	int64_t busy_ns;           /* how long to wait for a busy or offline volume; 0: default */
	unsigned fuse_threads_max; /* 0: default */
	bool dns; /* look for unknown cells in DNS (SRV, then AFSDB) */
};

/* AFS_ECONFIG: no cell, or no VL server; AFS_EBUSY: another process uses cache_dir; AFS_EACCESS, AFS_EIO,
 * AFS_ENOMEM.  Logged. */
afs_err client_new(
	const struct client_config *config, const struct client_ports *ports, struct client **out);
void client_service(struct client *c, struct rpc_service *out);
afs_err client_start(struct client *c, struct rpc_port *port);
/* Stores what is dirty (waits for it), gives up callbacks, ends threads. */
void client_stop(struct client *c);
void client_free(struct client *c);
DEFINE_CLEANUP_PTR(client, struct client, client_free)

/* Mount at `dir` (which exists) and serve it on threads of its own.  AFS_ENODEV: no /dev/fuse or no
 * fusermount3; AFS_EACCESS, AFS_EBUSY.  Logged. */
afs_err client_mount(struct client *c, const char *dir);
void client_unmount(struct client *c);
/* Where it is mounted, NULL when it is not (also after someone else unmounted it). */
const char *client_mounted_at(struct client *c);

/* --- tokens --------------------------------------------------------------------------------- */

struct client_token {
	const char *cell;
	const char *name;       /* for people: the principal it was made from */
	union {                 /* copied with its bytes; `both` names the pair */
		struct rx_token both;
		struct {
			struct rxkad_token kad; /* what stock tools can be told */
			struct rxgk_token gk;   /* what connections are made with, when there is one */
		};
	};
};
/* Replaces the user's tokens for that cell.  AFS_ENOENT: unknown cell; AFS_EEXPIRED; AFS_ETICKETLEN. */
afs_err client_token_set(struct client *c, uid_t uid, const struct client_token *token);
struct client_token_info {
	char cell[RX_NAME_MAX], name[RX_NAME_MAX * 2];
	wall_ns begins, expires;
	bool expired;
	bool rxkad, rxgk;        /* classes that are there */
	enum rx_sec_level level; /* of rxgk */
};
/* The number of tokens of a user; fills at most `cap` rows. */
size_t client_token_list(struct client *c, uid_t uid, struct client_token_info *out, size_t cap);
/* The user's token for `cell` (not NULL), for a tool of his that speaks to servers itself: strings and
 * ticket are copied into `arena`.  AFS_ENOENT, AFS_EEXPIRED, AFS_ENOMEM. */
afs_err client_token_get(struct client *c, uid_t uid, const char *cell, struct arena *arena,
	struct client_token *out);
/* The cell with number `index` (0 is the local one): its name and at most `cap` addresses of its VL
 * servers, host order (`ips` and `n` may be NULL when cap is 0).  AFS_ENOENT: past the end. */
afs_err client_cell_at(struct client *c, size_t index, char name[RX_NAME_MAX], uint32_t *ips,
	size_t cap, size_t *n);
/* `cell` NULL: all.  AFS_ENOENT: he had none. */
afs_err client_token_drop(struct client *c, uid_t uid, const char *cell);

/* --- cells and identities ------------------------------------------------------------------- */

/* One more cell; `vl` is copied.  A known cell gets these servers.  AFS_EINVAL: no name, no server; AFS_ETOOMANY. */
afs_err client_cell_add(struct client *c, const struct client_cell *cell);
/* All cells of a CellServDB's text (host lines need only an address).  Cells that are known stay; lines that cannot be
 * understood are passed over and counted in *bad. */
afs_err client_cells_load(struct client *c, const char *text, size_t len, unsigned *bad);
/* `alias` for the known cell `cell` in the dynamic root.  AFS_ENOENT, AFS_EEXIST, AFS_EINVAL, AFS_ETOOMANY. */
afs_err client_alias_add(struct client *c, const char *alias, const char *cell);
afs_err client_alias_at(struct client *c, size_t index, char alias[RX_NAME_MAX], char cell[RX_NAME_MAX]); /* AFS_ENOENT */
/* What tokens belong to, for a process: its PAG (a number with top byte 0x41, which client functions take for a uid), else its
 * uid.  A PAG is told by supplementary groups: one that is its number, or two that encode it (pioctl.md 4.3). */
uid_t client_identity(struct client *c, uid_t uid, pid_t pid);
uid_t client_identity_of(struct client *c, uid_t uid, const uint32_t *groups, size_t n);
uint32_t client_pag_new(struct client *c, uid_t uid); /* 0: no memory */
uid_t client_pag_owner(struct client *c, uint32_t pag); /* who made it; (uid_t)-1: there is none */

/* --- files ---------------------------------------------------------------------------------- */

/* A file as verbs name it.  A path is relative to the root of AFS ("<cell>/user/x"); symbolic links
 * and mount points in it are followed, the last component's too when `follow`. */
struct client_file {
	char cell[RX_NAME_MAX];
	struct AFSFid fid;
};
afs_err client_path(
	struct client *c, uid_t uid, const char *path, bool follow, struct client_file *out);

/* ACL as text (fileserver.md §6), NUL-terminated; *text is the caller's (mem_free). */
afs_err client_acl_get(struct client *c, uid_t uid, const struct client_file *f, char **text);
afs_err client_acl_set(struct client *c, uid_t uid, const struct client_file *f, const char *text);

struct client_volume {
	char name[AFS_VOLNAME_MAX + 34], offline_msg[256], motd[256];
	uint32_t id, parent_id, type; /* type as on the wire: 0 RO, 1 RW */
	uint32_t min_quota_kib, max_quota_kib, used_kib, part_free_kib, part_size_kib;
	bool online, in_service, needs_salvage;
};
afs_err client_volume_get(
	struct client *c, uid_t uid, const struct client_file *f, struct client_volume *out);
afs_err client_quota_set(
	struct client *c, uid_t uid, const struct client_file *f, uint32_t max_kib);

/* Mount point `name` in the directory `dir`, with text `target` ("#root.cell." or "%cell:vol."). */
afs_err client_mount_make(struct client *c, uid_t uid, const struct client_file *dir,
	const char *name, const char *target);
/* Directory `name` in `dir`, with mode 0755. */
afs_err client_dir_make(struct client *c, uid_t uid, const struct client_file *dir, const char *name);
/* AFS_EINVAL: it is no mount point. */
afs_err client_mount_read(struct client *c, uid_t uid, const struct client_file *dir,
	const char *name, char **target);
afs_err client_mount_remove(
	struct client *c, uid_t uid, const struct client_file *dir, const char *name);

/* Addresses (host order) of the servers that hold the file's volume. */
afs_err client_whereis(struct client *c, uid_t uid, const struct client_file *f, uint32_t *ips,
	size_t cap, size_t *n);
struct client_examine {
	struct AFSFid fid;
	uint32_t owner, group, mode;
	uint64_t length, data_version;
	uint32_t caller_access, anonymous_access;
	enum afs_filetype type;
};
afs_err client_examine(
	struct client *c, uid_t uid, const struct client_file *f, struct client_examine *out);
/* Forget status and clean data of a file, or of its whole volume; the next use asks the server. */
afs_err client_flush(struct client *c, const struct client_file *f, bool whole_volume);
/* Forget where volumes are and what mount points lead to. */
void client_check_volumes(struct client *c);

/* For `afscell status` and the console. */
struct client_stats {
	uint64_t cache_bytes, cache_max, dirty_bytes;
	uint64_t vnodes, volumes, servers, servers_down;
	uint64_t calls, retries, breaks, fetched_bytes, stored_bytes;
	/* files with changes of an earlier run: sent, kept as a copy because of a conflict, still waiting */
	uint64_t recovered, conflicts, waiting;
};
void client_stats(struct client *c, struct client_stats *out);

/* --- what fs tools ask and set; `root` alone may set, which the caller judges -------------------- */

struct client_volume_change {
	int32_t min_quota_kib, max_quota_kib; /* -1: leave */
	const char *name, *offline_msg, *motd; /* "" leaves */
};
afs_err client_volume_set(struct client *c, uid_t uid, const struct client_file *f, const struct client_volume_change *change);
/* The names in a directory, without "." and ".."; they may have any bytes.  `each` may
 * stop by an error, which comes back; it may call other verbs. */
afs_err client_names(struct client *c, uid_t uid, const struct client_file *dir, afs_err (*each)(void *ctx, const char *name), void *ctx);
/* The entry `name` of a directory as itself: mount points and links are not crossed. */
afs_err client_lookup(struct client *c, uid_t uid, const struct client_file *dir, const char *name, struct client_file *out);
afs_err client_flush_mount(struct client *c, uid_t uid, const struct client_file *dir, const char *name); /* AFS_EINVAL: none */
void client_flush_all(struct client *c);
afs_err client_prefetch(struct client *c, uid_t uid, const struct client_file *f); /* begins it */
struct client_server {
	uint32_t ip;
	char cell[RX_NAME_MAX]; /* of a VL server; "" */
	bool vl, down;
	uint16_t rank;  /* small is good */
	bool rank_set;  /* by hand */
	uint32_t rtt_us; /* 0: not measured */
};
size_t client_servers(struct client *c, bool vl, struct client_server *out, size_t cap);
void client_server_prefer(struct client *c, bool vl, uint32_t ip, uint16_t rank);
/* Ask each file server (of `cell`, NULL: all) whether it is there; gives those that are not. */
size_t client_servers_check(struct client *c, const char *cell, bool fast, uint32_t *down, size_t cap);

enum { CLIENT_SYSNAMES = 16, CLIENT_SYSNAME_MAX = 128 };
struct client_knobs {
	unsigned sysname_n;
	char sysname[CLIENT_SYSNAMES][CLIENT_SYSNAME_MAX]; /* what @sys stands for, in order */
	bool crypt;              /* of calls with a token that leave this machine */
	uint32_t probe_s;        /* how often servers are asked */
	uint32_t monitor_ip;     /* told of by fs monitor; 0xffffffff: nobody */
	int32_t bypass_threshold, store_behind; /* kept for tools; files are stored at close, and nothing bypasses the cache */
	uint32_t precache_kib, messages;
	bool rxstat_proc, rxstat_peer;
};
void client_knobs_get(struct client *c, struct client_knobs *out);
afs_err client_knobs_set(struct client *c, const struct client_knobs *in); /* AFS_EINVAL: sysname */
/* 0: as at the start.  AFS_EROFS: the cache is in memory. */
afs_err client_cache_resize(struct client *c, uint64_t bytes);
struct client_cache_info {
	uint64_t max_bytes, used_bytes, dirty_bytes, files, chunks, start_bytes;
	bool memory;
};
void client_cache_info(struct client *c, struct client_cache_info *out);
void client_uuid_new(struct client *c);
bool client_is_mount_root(struct client *c, const struct client_file *f);

/* Who waits for a server, and for how long.  *out is the caller's (mem_free). */
struct client_wait {
	uid_t uid;
	pid_t pid;       /* 0: work of our own */
	char what[32];   /* what for, in words */
	uint32_t volume;
	uint32_t server; /* 0: it waits for a busy volume, a lock, or room */
	uint64_t waited_ms;
};
size_t client_waits(struct client *c, struct client_wait *out, size_t cap);
