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
#include "rx/sec/rxkad.h"

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
	struct rxkad_token kad; /* copied with its ticket */
};
/* Replaces the user's token for that cell.  AFS_ENOENT: unknown cell; AFS_EEXPIRED; AFS_ETICKETLEN. */
afs_err client_token_set(struct client *c, uid_t uid, const struct client_token *token);
struct client_token_info {
	char cell[RX_NAME_MAX], name[RX_NAME_MAX * 2];
	wall_ns begins, expires;
	bool expired;
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
