/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The cache manager's middle: cells, servers, volumes, users, vnodes, and the file operations on
 * them.  Knows no FUSE; client/fuse and the verbs of client.h are made of what is declared here.
 *
 * Who may use what: `uid` is a local user, an ident is his token for one cell (or nobody's: the
 * cell's anonymous one).  Operations on names take the uid, since a path may lead through cells;
 * operations on an open file take the ident that opened it.
 *
 * Locks: tables (RANK_CM_TABLE), then a vnode (RANK_CM_VNODE), then the cache.  None is held while a
 * call is under way.  Break handling takes the vnode table, then each vnode, for a moment.
 *
 * How a callback can never be believed too long (callback.md §7): before a call that may bring a
 * promise, a stamp is taken of the breaks seen so far (of the vnode, of its volume, of whole servers,
 * and, for objects yet unknown, of any fid that was not in the table).  The promise is kept only if the
 * stamp still holds when the reply is merged.  The status itself serves the waiting caller once. */
#pragma once
#include "cell/base/list.h"
#include "cell/base/map.h"
#include "cell/base/mtx.h"
#include "cell/proto/cb.h"
#include "cell/proto/fs.h"
#include "client/cache/cache.h"
#include "client/client.h"
#include "client/cm/dir.h"

#include <stdatomic.h>
#include <stddef.h>

struct cm;

enum {
	CM_SITES_MAX = 13,
	CM_ADDRS_MAX = 15,
	CM_RIGHTS_MAX = 6,
	CM_WORKERS = 6,
	CM_NOTES_MAX = 1024,
	CM_CELLS_MAX = 256,
	CM_ALIASES_MAX = 64,
	CM_UNKNOWN_MAX = 32,
	CM_BUFS_MAX = 16,
	CM_BUF = 256 * 1024
};

struct cm_cell {
	char name[RX_NAME_MAX];
	uint64_t number; /* lasting: a hash of the name */
	unsigned index;
	struct rx_addr *vl;
	size_t vl_n;
	struct rpc_conn **vl_conns; /* made when first used */
	atomic_uint vl_good;        /* index of the server that answered last */
	uint16_t vl_rank[16];       /* by hand; 0: in their order */
	unsigned vl_down;           /* bits: did not answer last time */
	struct cm_ident *anonymous;
};

struct cm_server {
	struct list all;
	bool has_uuid;
	uint8_t uuid[AFS_UUID_BYTES];
	uint32_t uniquifier;
	struct rx_addr addrs[CM_ADDRS_MAX];
	unsigned addr_n, addr_good;
	mono_ns down_until; /* 0: up; else not asked before */
	bool used;          /* it may hold promises of ours */
	uint16_t rank;      /* by hand; 0: by distance */
	int64_t rtt_ns;     /* 0: not measured */
	struct cm_cell *cell; /* whose volumes led here first */
};

struct cm_volume {
	struct map_node by_id;
	struct cm_cell *cell;
	uint32_t id;
	/* guarded by cm->volumes_lock */
	bool located;
	bool locating;
	char name[66];
	uint32_t ids[3]; /* RW, RO, BK; 0: there is none */
	enum afs_voltype type;
	struct cm_server *sites[CM_SITES_MAX];
	unsigned site_n, site_good;
	uint32_t created; /* AFSVolSync.spare1 when last heard */
	atomic_uint breaks;
	mono_ns status_until; /* of `status` */
	struct client_volume status;
	struct cm_vnode *stat_root; /* not counted */
};

struct cm_ident {
	atomic_uint refs;
	uint64_t number; /* 0: anonymous */
	struct cm_cell *cell;
	uid_t uid;
	char name[RX_NAME_MAX * 2];
	struct rx_token token;
	uint8_t *ticket, *gk_token; /* its bytes */
	atomic_bool bad;   /* refused by a server, or expired: not used any more */
	struct list conns; /* of struct cm_conn; guarded by cm->conns_lock */
	struct list of_users;
};

struct cm_right {
	uint64_t ident;
	uint32_t rights;
};

struct cm_stamp {
	unsigned vnode, volume, resets, strange;
};

enum cm_event { CM_EV_ATTR = 1, CM_EV_DATA = 2, CM_EV_NAMES = 4 };

struct cm_lock; /* a local lock on a file: lock.c */

struct cm_vnode {
	struct map_node by_fid;
	struct list idle; /* when refs is 0; oldest first */
	atomic_uint refs;
	struct cm *cm;
	struct cm_volume *vol;
	struct AFSFid fid;

	struct mtx lock;
	struct cond changed;
	/* status */
	bool has_status, fetching, gone;
	struct AFSFetchStatus st;
	uint64_t dv;
	mono_ns promise; /* st may be used until then; 0: not without asking */
	atomic_uint breaks;
	struct cm_right rights[CM_RIGHTS_MAX];
	unsigned rights_n, rights_next;
	/* directory */
	struct cm_dir *dir,
		*stale; /* stale: indexes given up whose shown names the kernel still has */
	uint64_t dir_dv;
	bool modifying, fetching_dir;
	mono_ns missed; /* when a name's status was last missing: the next miss asks for many */
	struct cm_dir *stale_next;
	/* symbolic link and mount point */
	char *target;
	uint64_t target_dv;
	struct cm_vnode *mount; /* counted: the root it was last found to lead to */
	mono_ns mount_until;
	/* data */
	struct cache_file *cf;
	uint64_t data_dv; /* version of the clean pages */
	uint64_t length;  /* as local programs see it */
	uint64_t
		cut; /* the server has nothing of ours from here on (<= its length); UINT64_MAX: no cut */
	unsigned cuts;       /* moves with each cut */
	atomic_uint foreign; /* moves with each change that others made */
	uint32_t mtime;
	bool mtime_set; /* ours is newer than the server's */
	bool storing, store_queued, unsynced;
	unsigned writers, opens;
	struct cm_ident *store_ident;
	afs_err store_err;   /* to be reported once */
	struct list fetches; /* ranges under way: file.c */
	unsigned ahead;      /* jobs that fetch ahead */
	/* unlinked while open */
	struct cm_vnode *silly_dir;
	char silly_name[24];
	/* locks */
	struct list locks;
	int server_lock; /* -1 none, FS_LOCK_READ, FS_LOCK_WRITE */
	bool locking;
	struct cm_ident *lock_ident;
	struct list locked; /* of cm->locked */
	/* events for the front end */
	struct list event;
	unsigned event_what;
	bool event_queued, event_busy;
};

struct cm {
	struct client_config config; /* scalars only */
	struct client_ports ports;
	struct rpc_port *port;
	struct afsUUID uuid;
	struct cm_cell *cells; /* CM_CELLS_MAX; those below cell_n never go */
	atomic_size_t cell_n;
	struct mtx cells_lock; /* who adds one, aliases, knobs, PAGs, what DNS did not know */
	struct cm_alias {
		char name[RX_NAME_MAX];
		struct cm_cell *cell;
	} aliases[CM_ALIASES_MAX] GUARDED_BY(cells_lock);
	size_t alias_n GUARDED_BY(cells_lock);
	struct client_knobs knobs GUARDED_BY(cells_lock);
	struct cm_pag {
		uint32_t pag;
		uid_t owner;
	} *pags GUARDED_BY(cells_lock);
	size_t pag_cap GUARDED_BY(cells_lock);
	atomic_size_t pag_n;
	struct {
		char name[RX_NAME_MAX];
		mono_ns until;
	} unknown[CM_UNKNOWN_MAX] GUARDED_BY(cells_lock);
	unsigned unknown_next GUARDED_BY(cells_lock);
	uint64_t cache_start; /* bytes, as configured */
	struct cache *cache;
	char *cache_dir; /* NULL: in memory */
	uint64_t dirty_max;

	struct mtx vnodes_lock;
	struct map vnodes GUARDED_BY(vnodes_lock);
	struct cm_dump {
		struct cm_cell *cell;
		struct AFSFid fid;
	} *dump GUARDED_BY(vnodes_lock); /* for cmdebug */
	size_t dump_n GUARDED_BY(vnodes_lock);
	uint32_t started_sec;
	struct list idle GUARDED_BY(vnodes_lock);
	size_t idle_n GUARDED_BY(vnodes_lock);
	struct mtx volumes_lock; /* volumes and servers */
	struct cond volumes_changed;
	struct map volumes GUARDED_BY(volumes_lock);
	struct list servers GUARDED_BY(volumes_lock);
	struct mtx users_lock;
	struct list users GUARDED_BY(users_lock); /* idents with a token */
	uint64_t ident_next GUARDED_BY(users_lock);
	struct mtx conns_lock;
	struct mtx tries_lock;
	struct list tries GUARDED_BY(tries_lock);

	atomic_uint resets, strange;
	struct cm_vnode *root;  /* of the dynamic root; counted */
	struct cm_vnode **tops; /* its mount points, two per cell; counted */

	struct mtx bufs_lock;
	void *bufs[CM_BUFS_MAX] GUARDED_BY(bufs_lock);
	unsigned buf_n GUARDED_BY(bufs_lock);

	struct mtx jobs_lock;
	struct cond jobs_changed, keeper_wake;
	struct list jobs GUARDED_BY(jobs_lock);
	pthread_t workers[CM_WORKERS], keeper;
	unsigned worker_n;
	bool keeper_runs, stopping;
	bool recovering, recover_again GUARDED_BY(jobs_lock);
	struct cache_note *old_notes; /* of an earlier run; only the recovering job changes them */
	size_t old_note_n;
	struct list locked GUARDED_BY(jobs_lock); /* vnodes with a server lock */

	struct mtx events_lock;
	struct cond events_changed;
	struct list events GUARDED_BY(events_lock);
	bool events_wanted GUARDED_BY(events_lock);
	void *front; /* client/fuse, while mounted */
	void (*front_stop)(struct cm *cm);

	atomic_ullong n_calls, n_retries, n_breaks, n_fetched, n_stored, n_recovered, n_conflicts;
};

static inline mono_ns cm_now(const struct cm *cm) { return cm->ports.now(cm->ports.ctx); }
static inline uint32_t cm_wall_sec(const struct cm *cm)
{
	return clk_wire_sec(cm->ports.wall(cm->ports.ctx));
}

/* Where a uid stands, a PAG may stand too: a number with this top byte (pioctl.md §4.3).  Whoever really has such a uid
 * has no tokens here. */
static inline bool cm_is_pag(uid_t uid) { return uid >> 24 == 0x41; }

/* --- cm.c ---------------------------------------------------------------------------------------- */
struct cm_cell *cm_cell_find(struct cm *cm, const char *name, size_t len);

/* --- cells.c */
afs_err cm_cells_new(struct cm *cm, const struct client_config *config);
afs_err cm_dynroot_new(struct cm *cm);
/* An unlisted name of the dynamic root: ask DNS.  True: it is there now. */
bool cm_cell_discover(struct cm *cm, const char *name);
/* --- knobs.c */
void cm_knobs_init(struct cm *cm);
uint16_t cm_server_rank(const struct cm *cm, const struct cm_server *s); /* cm->volumes_lock held */
/* The n-th thing that a name ending in @sys may stand for; false: there is none. */
bool cm_sysname(struct cm *cm, const char *name, unsigned n, char *out, size_t cap);

/* A buffer of CM_BUF bytes, used again and again; NULL: no memory. */
void *cm_buf_get(struct cm *cm);
void cm_buf_put(struct cm *cm, void *buf);

/* --- ident.c ------------------------------------------------------------------------------------- */
/* The user's token for the cell if it is good, else the anonymous ident.  Counted. */
struct cm_ident *cm_ident_get(struct cm *cm, struct cm_cell *cell, uid_t uid);
struct cm_ident *cm_ident_ref(struct cm_ident *id);
void cm_ident_unref(struct cm *cm, struct cm_ident *id);
struct cm_ident *cm_ident_new(struct cm *cm, struct cm_cell *cell, uid_t uid);
bool cm_ident_usable(const struct cm *cm, const struct cm_ident *id); /* not refused, not expired */
void cm_idents_fini(struct cm *cm);
/* A connection to `server` for the ident; counted.  AFS_ENOMEM. */
afs_err cm_conn_get(
	struct cm *cm, struct cm_ident *id, struct cm_server *server, struct rpc_conn **out);
/* Is the volume's server reached without the network?  Then pieces are small, and nothing is fetched ahead. */
bool cm_volume_is_direct(struct cm *cm, struct cm_volume *v, struct cm_ident *id);
struct rpc_conn *cm_conn_any(struct cm *cm, struct cm_ident *id); /* one of its connections, counted; NULL */
void cm_conn_drop(
	struct cm *cm, struct cm_ident *id, struct rpc_conn *conn); /* not to be used again */

/* --- volume.c ------------------------------------------------------------------------------------- */
struct cm_volume *cm_volume_get(
	struct cm *cm, struct cm_cell *cell, uint32_t id); /* NULL: no memory */
/* Where it is; waits.  AFS_ENOENT: no such volume; AFS_ENODEV: no site; AFS_EDEAD: no VL server. */
afs_err cm_volume_locate(struct cm *cm, struct cm_volume *v);
void cm_volume_forget(struct cm *cm, struct cm_volume *v);
/* The volume that a mount point names; `from` is the volume that holds it. */
afs_err cm_volume_named(struct cm *cm, struct cm_cell *cell, const char *name, bool forced_rw,
	const struct cm_volume *from, struct cm_volume **out);
bool cm_volume_is_ro(const struct cm_volume *v);
void cm_servers_fini(struct cm *cm);
struct cm_server *cm_server_by_uuid(struct cm *cm, const struct afsUUID *uuid);

/* --- try.c ------------------------------------------------------------------------------------------ */
/* One call, tried until it is answered for good:
 *
 *   struct cm_try t = {.cm = cm, .vol = vol, .ident = id};
 *   while (cm_try(&t))
 *           t.err = fs_call_fetch_status(t.conn, &in, &out, &t.res);
 *   afs_err err = cm_try_end(&t);
 *
 * It waits for busy volumes, looks moved ones up again, goes on to other sites, and does without a token
 * that a server refuses (cache-manager.md §5). */
struct cm_try {
	struct cm *cm;
	struct cm_volume *vol;
	struct cm_ident *ident; /* borrowed */
	struct rpc_conn *conn;
	struct cm_server *server;
	struct rpc_result res;
	mono_ns sent; /* when this attempt began: promises count from here */
	afs_err err;
	/* its own */
	bool begun, done;
	unsigned attempts, relocated, skip;
	mono_ns deadline;
	struct cm_ident *used; /* counted */
	struct list waits;     /* of cm->tries */
	mono_ns began;
	pid_t pid;
	bool pausing;
};
/* For whom this thread works; 0: nobody in particular. */
void cm_try_for(pid_t pid);
bool cm_try(struct cm_try *t);
afs_err cm_try_end(struct cm_try *t);

/* --- vnode.c ---------------------------------------------------------------------------------------- */
afs_err cm_vnode_get(
	struct cm *cm, struct cm_cell *cell, const struct AFSFid *fid, struct cm_vnode **out);
struct cm_vnode *cm_vnode_find(
	struct cm *cm, struct cm_cell *cell, const struct AFSFid *fid); /* counted, or NULL */
static inline struct cm_vnode *cm_vnode_ref(struct cm_vnode *v)
{
	atomic_fetch_add(&v->refs, 1);
	return v;
}
void cm_vnode_unref(struct cm_vnode *v);
static inline void cm_vnode_cleanup(struct cm_vnode **v)
{
	if (*v)
		cm_vnode_unref(*v);
}
void cm_vnodes_fini(struct cm *cm);
/* Each vnode of a volume (NULL: all): `each` is called without locks, with a counted vnode. */
void cm_vnodes_each(struct cm *cm, const struct cm_volume *vol,
	void (*each)(struct cm_vnode *v, void *ctx), void *ctx);

/* --- status.c ---------------------------------------------------------------------------------------- */
struct cm_stamp cm_stamp(
	const struct cm *cm, const struct cm_volume *vol, const struct cm_vnode *v /* or NULL */);
/* Take in a status that a call brought; `cb` NULL: the call promises nothing, what we hold stays.
 * `own_dv`: the version that our own change was to bring, 0 when the call changed nothing: then clean
 * data stay good. */
void cm_merge_locked(struct cm_vnode *v, const struct cm_ident *id, const struct AFSFetchStatus *st,
	const struct AFSCallBack *cb, const struct cm_stamp *stamp, mono_ns sent, uint64_t own_dv)
	REQUIRES(v->lock);
void cm_volsync(struct cm_volume *vol, const struct AFSVolSync *sync);
bool cm_fresh_locked(const struct cm_vnode *v)
	REQUIRES(v->lock); /* status may be used without asking */
/* Status under a promise where possible, and when `rights`, what the ident may do.  On AFS_OK the vnode
 * is locked; else it is not. */
afs_err cm_status_lock(struct cm_vnode *v, struct cm_ident *id, bool rights);
/* Status of many, up to FS_BULK_MAX in one call; failures are those vnodes' own affair. */
afs_err cm_status_bulk(struct cm *cm, struct cm_volume *vol, struct cm_ident *id,
	struct cm_vnode *const *v, size_t n);
uint32_t cm_rights_locked(const struct cm_vnode *v, const struct cm_ident *id, bool *known)
	REQUIRES(v->lock);
void cm_break(struct cm_vnode *v); /* the server said so, or we must assume it */
void cm_gone_locked(struct cm_vnode *v) REQUIRES(v->lock);
void cm_gone_quiet_locked(struct cm_vnode *v) REQUIRES(v->lock); /* the kernel, which removed it, knows */
void cm_dir_discard_locked(struct cm_vnode *v) REQUIRES(v->lock);

struct cm_attr {
	enum afs_filetype type;
	uint32_t mode, nlink, owner, group, mtime, ctime;
	uint64_t size, ino, dv;
	mono_ns until; /* may be kept so long; 0: not at all */
	unsigned breaks;
};
afs_err cm_getattr(struct cm_vnode *v, uid_t uid, struct cm_attr *out);
void cm_attr_locked(const struct cm_vnode *v, struct cm_attr *out) REQUIRES(v->lock);
uint64_t cm_ino(const struct cm_vnode *v);
bool cm_is_mount_locked(const struct cm_vnode *v) REQUIRES(v->lock); /* a mount point's own vnode */

struct cm_setattr {
	bool set_mode, set_owner, set_group, set_mtime, set_size;
	uint32_t mode, owner, group, mtime;
	uint64_t size;
};
/* `open`: by a descriptor that may write: a new size may wait for the close. */
afs_err cm_setattr(
	struct cm_vnode *v, uid_t uid, struct cm_ident *open, const struct cm_setattr *set);

/* --- access.c ----------------------------------------------------------------------------------------- */
/* May he?  `want` is of R_OK, W_OK, X_OK.  AFS_EACCESS, AFS_EROFS. */
afs_err cm_access(struct cm_vnode *v, uid_t uid, int want);
/* Does everybody see this directory's names?  Only then may the kernel answer for us. */
bool cm_is_public_locked(const struct cm_vnode *v) REQUIRES(v->lock);

/* --- name.c --------------------------------------------------------------------------------------------- */
struct cm_found {
	struct cm_vnode *vnode; /* counted; NULL: no such name */
	mono_ns until;          /* the answer may be kept so long; 0: not at all */
	unsigned breaks;        /* of the directory, when the answer was made */
};
/* AFS_OK also for a name that is not there.  A mount point is given as itself. */
afs_err cm_lookup(struct cm_vnode *dir, uid_t uid, const char *name, struct cm_found *out);
/* The index, counted for the caller (cm_dir_put).  Rows of it must not be changed. */
afs_err cm_dir_get(struct cm_vnode *dir, uid_t uid, struct cm_dir **out);
void cm_dir_put(struct cm_vnode *dir, struct cm_dir *d);
/* As cm_status_lock, and with the index in place.  Used by name.c and change.c. */
afs_err cm_index_lock(struct cm_vnode *dir, struct cm_ident *id);
/* Names that were shown and now may be wrong: `each` per name; they count as not shown afterwards. */
void cm_take_shown(
	struct cm_vnode *dir, void (*each)(void *ctx, const char *name, size_t len), void *ctx);
afs_err cm_readlink(struct cm_vnode *v, uid_t uid, char **out /* the caller's */);
/* Where a mount point leads: the root of the volume, counted. */
afs_err cm_mount_follow(struct cm_vnode *mp, uid_t uid, struct cm_vnode **out);
/* Judge a mount point's text.  AFS_EINVAL: it is none. */
struct cm_mount_text {
	char cell[RX_NAME_MAX], volume[66];
	bool forced_rw;
	uint32_t vnode, unique;
};
afs_err cm_mount_parse(const char *text, size_t len, struct cm_mount_text *out);
/* A path from a directory on; symbolic links are followed as far as they stay relative. */
afs_err cm_walk(struct cm *cm, uid_t uid, const char *path, bool follow, struct cm_vnode **out);

/* --- change.c ---------------------------------------------------------------------------------------------- */
/* Who makes something: whose tokens are used, and the group that the new thing gets. */
struct cm_who {
	uid_t uid;
	gid_t gid;
};
afs_err cm_create(struct cm_vnode *dir, struct cm_who who, const char *name, uint32_t mode, struct cm_vnode **out);
afs_err cm_mkdir(struct cm_vnode *dir, struct cm_who who, const char *name, uint32_t mode, struct cm_vnode **out);
afs_err cm_symlink(struct cm_vnode *dir, struct cm_who who, const char *name, const char *text, struct cm_vnode **out);
afs_err cm_link(struct cm_vnode *v, struct cm_vnode *dir, uid_t uid, const char *name);
afs_err cm_unlink(struct cm_vnode *dir, uid_t uid, const char *name);
afs_err cm_rmdir(struct cm_vnode *dir, uid_t uid, const char *name);
afs_err cm_rename(struct cm_vnode *from, const char *name, struct cm_vnode *to,
	const char *new_name, uid_t uid, bool no_replace);
afs_err cm_mount_delete(struct cm_vnode *dir, uid_t uid, const char *name); /* only a mount point */
/* The last close of a file that was unlinked while open. */
void cm_silly_end(struct cm_vnode *v, struct cm_ident *id);

/* --- file.c ------------------------------------------------------------------------------------------------- */
/* An open file.  One per open(); its functions may be called from any thread. */
struct cm_file {
	struct cm_vnode *vnode; /* counted */
	struct cm_ident *ident; /* counted */
	bool writes;
	atomic_ullong next;   /* where a sequential reader goes on */
	atomic_ullong window; /* bytes to fetch at once */
	struct list opened;   /* the front end's */
};
/* `flags`: as open(2).  Judges access, cuts with O_TRUNC. */
afs_err cm_open(struct cm_vnode *v, uid_t uid, int flags, struct cm_file **out);
/* What cm_create() made is opened without judging it again. */
afs_err cm_open_new(struct cm_vnode *v, uid_t uid, int flags, struct cm_file **out);
void cm_close(struct cm_file *f); /* stores nothing: cm_flush() comes before, and reports */
afs_err cm_read(struct cm_file *f, uint64_t off, void *buf, size_t len, size_t *got);
afs_err cm_write(struct cm_file *f, uint64_t off, const void *buf, size_t len);
afs_err cm_flush(struct cm_file *f); /* the server has it all when this returns */
afs_err cm_fsync(struct cm_file *f); /* and has it on stable storage */
afs_err cm_data_begin_locked(struct cm_vnode *v)
	REQUIRES(v->lock); /* there is a cache file, of this version */
void cm_data_forget_locked(struct cm_vnode *v) REQUIRES(v->lock);
afs_err cm_cut_locked(struct cm_vnode *v, struct cm_ident *id, uint64_t size) REQUIRES(v->lock);
/* Fetch [from, to) into the cache; whole pages. */
afs_err cm_fetch(struct cm_vnode *v, struct cm_ident *id, uint64_t from, uint64_t to);
/* All content in memory, for directories and links.  *out is the caller's (mem_free). */
afs_err cm_fetch_whole(struct cm_vnode *v, struct cm_ident *id, size_t max, uint8_t **out,
	size_t *len, struct AFSFetchStatus *st, struct AFSCallBack *cb, mono_ns *sent);

/* --- store.c ------------------------------------------------------------------------------------------------- */
/* Store what is dirty.  `all` false: only long runs, for a writer that goes on.  `durable`: FSYNC. */
afs_err cm_store(struct cm_vnode *v, bool all, bool durable);
void cm_store_soon(struct cm_vnode *v);
afs_err cm_store_wait_room(struct cm_vnode *v); /* until not too much is dirty */
void cm_store_everything(struct cm *cm);
bool cm_needs_store_locked(const struct cm_vnode *v) REQUIRES(v->lock);
/* One StoreData64 of [pos, end) from `cf`; *dv is the version before and after.  The caller has `storing`. */
afs_err cm_store_range(struct cm_vnode *v, struct cm_ident *id, struct cache_file *cf, uint64_t pos, uint64_t end,
	uint64_t file_length, uint32_t mtime, uint64_t *dv);
/* Tell the cache what a next run has to know of this file's changes; `more`: a change is about to be made. */
void cm_meta_locked(struct cm_vnode *v, bool more) REQUIRES(v->lock);

/* --- jobs.c: threads that work ahead and behind ------------------------------------------------------------------ */
struct cm_job {
	struct list queue;
	void (*run)(struct cm *cm, struct cm_job *job); /* frees the job */
	struct cm_vnode *vnode;                         /* counted, or NULL */
	struct cm_ident *ident;                         /* counted, or NULL */
	uint64_t from, to;
};
bool cm_job_add(struct cm *cm, struct cm_job job); /* takes the references, also on failure */
void cm_job_done(struct cm *cm, struct cm_job *job);
afs_err cm_threads_start(struct cm *cm);
void cm_threads_stop(struct cm *cm);
void cm_event(struct cm_vnode *v, unsigned what);
/* Waits for the next event; NULL: the end.  The vnode is the caller's until cm_event_done(). */
struct cm_vnode *cm_event_next(struct cm *cm, unsigned *what);
void cm_event_done(struct cm_vnode *v);
/* Waits until what is known of `v` so far has been told (a second at most). */
void cm_event_settle(struct cm_vnode *v);
void cm_events_want(struct cm *cm, bool wanted);

/* --- recover.c: what an earlier run left ------------------------------------------------------------------------- */
void cm_recover_begin(struct cm *cm); /* before anything is open */
void cm_recover(struct cm *cm);       /* does not wait */

/* --- lock.c ----------------------------------------------------------------------------------------------------- */
struct cm_lock_want {
	uint64_t owner;
	pid_t pid;
	bool flock;          /* whole file, of the descriptor; else of the process, with a range */
	int type;            /* F_RDLCK, F_WRLCK, F_UNLCK */
	uint64_t start, end; /* inclusive */
};
/* AFS_EAGAIN: someone else has it. */
afs_err cm_lock_try(struct cm_file *f, const struct cm_lock_want *want);
bool cm_lock_test(
	struct cm_vnode *v, const struct cm_lock_want *want, struct cm_lock_want *blocker);
void cm_locks_drop(struct cm_file *f, uint64_t owner, bool flock);
void cm_locks_drop_file(struct cm_file *f); /* those of processes that came through this one */
void cm_locks_extend(struct cm *cm);
void cm_locks_fini(struct cm_vnode *v);

/* --- acl.c -------------------------------------------------------------------------------------------------------- */
afs_err cm_acl_get(struct cm_vnode *v, uid_t uid, char **text);
afs_err cm_acl_set(struct cm_vnode *v, uid_t uid, const char *text);

/* --- callback.c ------------------------------------------------------------------------------------------------------ */
void cm_callback_service(struct cm *cm, struct rpc_service *out);

/* --- verbs.c --------------------------------------------------------------------------------------------------------- */
afs_err cm_volume_status(struct cm *cm, struct cm_vnode *v, uid_t uid, struct client_volume *out);
