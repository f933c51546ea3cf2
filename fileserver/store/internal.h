/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the files of the store share.  Locks: the store's table (RANK_VS_PARTITION), then a volume
 * (RANK_VS_VOLUME), then leaves: open descriptors, group commit.  Functions named _locked and
 * those that take a struct vs_tx need the volume's lock. */
#pragma once
#include "cell/base/list.h"
#include "cell/base/map.h"
#include "cell/base/mtx.h"
#include "cell/db/db.h"
#include "fileserver/store/dir.h"
#include "fileserver/store/schema.h"
#include "fileserver/store/store.h"

#include <stdatomic.h>

enum {
	VS_INLINE_MAX = 4096,
	VS_SYMLINK_MAX = 1024,
	VS_LINKS_MAX = 65535,
};
#define VS_EXTENT UINT64_C(4194304)
#define VS_LENGTH_MAX (UINT64_C(1) << 54) /* 2^32 extents */
#define VS_SUM_BLOCK 65536u

/* --- descriptors of extent files ------------------------------------------------------ */

struct vs_fd {
	struct map_node node;
	struct list lru; /* linked while nobody uses it */
	uint64_t volume; /* serial of the open group */
	uint64_t extent;
	int fd;
	unsigned refs;
	bool dropped; /* its file is gone: close at the last put */
};
struct vs_fds {
	struct mtx lock;
	struct map by_id GUARDED_BY(lock);
	struct list idle GUARDED_BY(lock);
	size_t count GUARDED_BY(lock), limit;
};
void vs_fds_init(struct vs_fds *f, size_t limit);
void vs_fds_fini(struct vs_fds *f);
/* Open (or make, emptied) an extent's file.  AFS_ENOENT: no such file. */
afs_err vs_fd_get(struct vs_fds *f, int data_fd, uint64_t volume, uint64_t extent, bool make,
	struct vs_fd **out);
void vs_fd_put(struct vs_fds *f, struct vs_fd *fd); /* NULL is fine */
void vs_fd_drop(struct vs_fds *f, uint64_t volume, uint64_t extent);
void vs_fd_drop_volume(struct vs_fds *f, uint64_t volume);

/* --- store, partition, volume --------------------------------------------------------- */

struct vs_store {
	struct vs_config config;
	struct mtx lock; /* RANK_VS_PARTITION: the tables of partitions and volumes */
	struct vs_partition *parts[256] GUARDED_BY(lock);
	struct map volumes GUARDED_BY(lock);
	struct vs_fds fds;
	struct vs_buffers { /* of writers, reused: see design D13 */
		struct mtx lock;
		void *kept[8] GUARDED_BY(lock);
		unsigned n GUARDED_BY(lock);
	} buffers;
	atomic_size_t vnodes, dir_pages; /* cached now */
	atomic_uint open_groups;
	atomic_uint_least64_t serial;

	struct mtx keep_lock; /* RANK_LEAF */
	struct cond keep_cond;
	bool keep_stop GUARDED_BY(keep_lock), keeping GUARDED_BY(keep_lock);
};

struct vs_partition {
	struct vs_store *s;
	unsigned id;
	char name[16]; /* "/vicepa" */
	char *path;
	int fd, vol_fd, tmp_fd, lock_fd;
	struct mtx space_lock; /* RANK_LEAF */
	mono_ns space_at GUARDED_BY(space_lock);
	struct vs_space space GUARDED_BY(space_lock);
	atomic_uint tmp_serial;
};

enum vs_kind {
	VS_EMPTY = 0,   /* nothing stored: length 0, or all of it a hole */
	VS_INLINE = 1,  /* blob `content` */
	VS_EXTENTS = 2, /* rows of file_extents */
	VS_PAGES = 3,   /* rows of dir_pages */
};

struct vs_row {
	struct vs_status st;
	enum vs_kind kind;
	int64_t born, content, content_born;
};

/* A directory object and where its pages are stored. */
struct vs_dirobj {
	struct list lru;
	struct vs_vnode *vn;
	uint32_t counted; /* pages in the store's count */
	struct vs_dir d;
	struct vs_page_at {
		int64_t blob, born;
	} * at;
	uint32_t stored, at_cap; /* pages that have rows; entries allocated */
};

struct vs_vnode { /* cached; the row is the truth */
	struct map_node node;
	struct list lru;
	struct vs_row row;
	struct vs_acl *acl;    /* directories */
	struct vs_dirobj *dir; /* NULL: not loaded */
};

struct vs_volume {
	struct vs_store *s;
	struct vs_partition *part;
	afs_volid id;
	struct map_node node; /* in store->volumes, which holds one reference */
	atomic_uint refs;

	/* Whose group it lives in: itself, or for a clone the group's read-write volume, or a
	 * headless stand-in when that is gone.  A clone holds a reference on it, uses its lock and its
	 * database, and sees it at `epoch`.  Changes under the old base's lock: vs_base_lock. */
	_Atomic(struct vs_volume *) base;
	struct vs_volume *before;  /* headless: whose group it was (referenced) */
	struct list clones;        /* base: of its clones */
	struct list clone_link;    /* clone */
	bool making;               /* clone: not yet named by a commit */
	atomic_bool vanished;      /* clone: its link was what a crash left: out of the table with it */
	bool headless;
	char folder[32];           /* base: its name under vol/ */
	struct vs_reclaim {        /* base: rows that nobody sees are looked for behind these keys */
		bool wanted, running;
		int stage;
		int64_t vnode, page, born;
	} reclaim;

	struct mtx lock; /* RANK_VS_VOLUME: all below */
	bool deleted, loaded;
	afs_err broken; /* why it cannot be opened */
	enum vs_claim claim;
	struct db *db; /* NULL: closed, opened when needed */
	int data_fd, wal_fd;
	uint64_t serial; /* of this opening: key of descriptors */
	struct vs_header h;
	bool clean;   /* as stored: no extent files without rows */
	bool unswept; /* there may be extent files without rows */
	int64_t epoch; /* the present one; of a clone, the one it sees */
	struct map vnodes;
	struct list lru, dir_lru; /* least recently used first */
	struct vs_numbers {
		uint64_t *bits; /* a bit per vnode number in use */
		uint32_t known; /* numbers below are loaded */
		uint32_t hint[2];
	} numbers;
	uint64_t next_extent;
	struct list writers;
	uint64_t *reap; /* extents without rows whose files go next */
	size_t reap_n, reap_cap;
	unsigned commits_since_checkpoint;
	bool used; /* since the keeper last looked */
	unsigned idle_rounds;
	uint32_t use_unsaved;

	struct mtx sync_lock; /* RANK_LEAF: group commit (VS_POWER) */
	struct cond sync_cond;
	uint64_t synced GUARDED_BY(sync_lock);
	bool syncing GUARDED_BY(sync_lock);
	afs_err sync_err GUARDED_BY(sync_lock);
	atomic_uint_least64_t committed;
};

/* volume.c */
/* Take the lock and make the volume usable; on an error the lock is not held.  `served`: for the
 * file service, which a claim stops; else only a deleted or broken volume does. */
afs_err vs_volume_lock(struct vs_volume *v, bool served);
afs_err vs_volume_lock_write(struct vs_volume *v); /* served, and read-write: AFS_EROFS */
void vs_volume_unlock(struct vs_volume *v);        /* also trims caches */
/* After unlocking: what was committed is on disk (VS_POWER), waits. */
afs_err vs_volume_settle(struct vs_volume *v, uint64_t seq);
afs_err vs_volume_open_locked(struct vs_volume *v);
void vs_volume_shut_locked(struct vs_volume *v); /* close descriptors and database; caches go */
/* Sweep `data/` for files no row names (after a crash). */
afs_err vs_volume_sweep_locked(struct vs_volume *v);
/* The file of an extent without a row goes, soon: unlinking many takes time. */
void vs_volume_reap_later(struct vs_volume *v, uint64_t extent);
void vs_volume_reap_locked(struct vs_volume *v, size_t most);
void vs_volume_checkpoint_locked(struct vs_volume *v);
/* Before the first extent file is made: a crash from here on leaves files to sweep. */
afs_err vs_volume_mark_dirty_locked(struct vs_volume *v);
void vs_volume_save_use_locked(struct vs_volume *v);
void vs_volume_use_locked(struct vs_volume *v, wall_ns now);
/* Into the store's table, with its lock held if `locked`.  AFS_EVOLEXISTS. */
afs_err vs_volume_add(struct vs_partition *p, afs_volid id, bool locked, struct vs_volume **out);
afs_err vs_group_make(struct vs_partition *p, int parent_fd, const char *name,
	const struct vs_header *h, bool with_root);
afs_err vs_sync_dir(int parent_fd, const char *name);
afs_err vs_group_open(
	struct vs_partition *p, int parent_fd, const char *name, struct db **db, int *data_fd);
afs_err vs_header_write(
	struct db *db, const struct vs_header *h, int64_t epoch); /* 0: the living one's */
afs_err vs_header_read(struct db *db, struct vs_header *h, int64_t *epoch, bool *clean);
/* AFS_ENOVOL: no such clone. */
afs_err vs_header_read_clone(struct db *db, afs_volid id, struct vs_header *h, int64_t *epoch);
void vs_header_apply(struct vs_header *to, const struct vs_header *from, uint32_t mask);
afs_err vs_remove_tree(int parent_fd, const char *name);
struct vs_listing { /* names in a folder, without "." and ".." */
	char **name;
	size_t n, cap;
};
afs_err vs_listing_read(int fd, struct vs_listing *out);
void vs_listing_cleanup(struct vs_listing *l);
/* The lock of v's group, held; gives the base to unlock. */
struct vs_volume *vs_base_lock(struct vs_volume *v);
/* A commit was made: its number, for vs_volume_settle. */
static inline uint64_t vs_volume_committed_locked(struct vs_volume *v)
{
	struct vs_volume *b = v->base;
	b->commits_since_checkpoint++;
	return atomic_fetch_add(&b->committed, 1) + 1;
}
/* Column `epoch` of v's row in volumes. */
static inline int64_t vs_row_epoch(const struct vs_volume *v) { return v->base == v ? 0 : v->epoch; }

/* clone.c */
/* A clone found by its link, without a look into the group. */
afs_err vs_clone_register(struct vs_volume *base, afs_volid id);
/* What v->base knows, for a verb on clone v.  AFS_ENOVOL: its row is gone. */
afs_err vs_clone_view_locked(struct vs_volume *v);
/* The clones of v go on without it, in `h`, whose folder was put in place. */
afs_err vs_headless_new(struct vs_volume *v, struct vs_volume **out);
void vs_headless_adopt_locked(struct vs_volume *v, struct vs_volume *h);
/* A folder "<id>.<n>" found at attach. */
afs_err vs_headless_attach(struct vs_partition *p, const char *folder);
afs_err vs_clone_link(struct vs_partition *p, afs_volid id, const char *folder);
/* Look at some more rows; remove those that no volume of the group sees. */
void vs_reclaim_locked(struct vs_volume *base, unsigned most);
struct vs_volume *vs_volume_alloc(struct vs_partition *p, afs_volid id);
void vs_volume_table_remove(struct vs_volume *v);
/* Into the store's table.  AFS_EVOLEXISTS. */
afs_err vs_volume_table_add(struct vs_volume *v);
/* Referenced; in any state; NULL: none. */
struct vs_volume *vs_volume_lookup(struct vs_partition *p, afs_volid id);
afs_err vs_clone_delete(struct vs_volume *v);
/* Without locks, after v was found not to be there: a clone that never was leaves the table. */
void vs_clone_vanish(struct vs_volume *v);
/* Of a group without a read-write volume. */
afs_err vs_epoch_read(struct db *db, int64_t *epoch, bool *clean);
static inline bool vs_power(const struct vs_volume *v)
{
	return v->s->config.durability == VS_POWER;
}
static inline afs_err vs_err_of_db(afs_err err) { return err == AFS_ENOSPC ? AFS_EDISKFULL : err; }
afs_err vs_err_of_errno(int eno);

/* vnode.c */
afs_err vs_vnode_get(struct vs_volume *v, struct vs_fid fid, struct vs_vnode **out);
struct vs_vnode *vs_vnode_find(struct vs_volume *v, uint32_t vnode); /* cached, or NULL */
afs_err vs_node_read(struct vs_volume *v, struct vs_fid fid, struct vs_node *out);
/* The same from memory; AFS_EWAIT: not there. */
afs_err vs_node_cached(struct vs_volume *v, struct vs_fid fid, struct vs_node *out);
afs_err vs_vnode_get_dir(struct vs_volume *v, struct vs_fid fid,
	struct vs_vnode **out); /* AFS_ENOTDIR; object loaded */
afs_err vs_vnode_load_dir(struct vs_volume *v, struct vs_vnode *vn);
void vs_vnode_insert(
	struct vs_volume *v, struct vs_vnode *vn); /* takes vn; frees it when memory is short */
void vs_vnode_forget(struct vs_volume *v, struct vs_vnode *vn); /* out of the cache, freed */
void vs_vnode_free(struct vs_vnode *vn);
void vs_vnode_drop_dir(struct vs_volume *v, struct vs_vnode *vn);
void vs_vnode_adopt_dir(
	struct vs_volume *v, struct vs_vnode *vn, struct vs_dirobj *o); /* or recount it */
void vs_vnode_forget_all(struct vs_volume *v);
void vs_vnode_trim(struct vs_volume *v);
afs_err vs_row_read(struct db_rows *r, struct vs_row *row, struct vs_acl *acl);
afs_err vs_row_insert(struct db *db, const struct vs_row *row, const struct vs_acl *acl);
afs_err vs_row_update(struct db *db, const struct vs_row *row, const struct vs_acl *acl);
afs_err vs_dir_save(struct db *db, uint32_t vnode, struct vs_dirobj *o, int64_t epoch);
/* All pages of a directory that `epoch` sees, without a look at what they hold.  AFS_ECORRUPT: a page is
 * missing or of another size. */
afs_err vs_dir_read(struct db *db, uint32_t vnode, int64_t epoch, struct vs_dirobj *o);
void vs_dirobj_free(struct vs_dirobj *o);
DEFINE_CLEANUP_PTR(vs_dirobj, struct vs_dirobj, vs_dirobj_free)

/* tree.c: all living vnodes of a group and what names them, for check and restore */
struct vs_tree_node {
	struct vs_fid fid, parent, named_in; /* named_in: the directory of its first name */
	enum afs_filetype type;
	enum vs_kind kind;
	uint32_t links, names, subdirs;
	uint64_t length;
	int64_t born, content;
	bool two_dirs; /* named in more than one directory */
	bool reached;
};
struct vs_tree {
	struct vs_tree_node *node; /* by ascending vnode number */
	size_t n, cap;
};
void vs_tree_cleanup(struct vs_tree *t);
struct vs_tree_node *vs_tree_find(const struct vs_tree *t, uint32_t vnode);
/* `bad` (may be NULL) hears of each row that cannot be read; they are left out. */
afs_err vs_tree_load(
	struct db *db, int64_t epoch, struct vs_tree *t, void (*bad)(void *ctx, int64_t key), void *ctx);
/* An entry other than "." and "..": count it.  NULL: it leads nowhere. */
struct vs_tree_node *vs_tree_name(
	struct vs_tree *t, struct vs_tree_node *dir, const struct vs_dir_entry *e);
/* After all names: what hangs together with the root. */
void vs_tree_reach(struct vs_tree *t);

/* check.c */
struct vs_checking {
	struct db *db;
	int data_fd;
	afs_volid clone; /* the one to be proved; 0: the read-write volume */
	int64_t epoch;   /* what it sees */
	struct vs_volume *live; /* what the rows are a copy of, or NULL: nothing moves */
	void (*found)(void *ctx, const struct vs_finding *f);
	void *ctx;
	size_t findings;
};
afs_err vs_check_group(struct vs_checking *c);

/* numbers.c */
afs_err vs_number_take(struct vs_volume *v, bool directory, uint32_t *out);
void vs_number_give(struct vs_volume *v, uint32_t vnode);

/* quota.c */
uint64_t vs_blocks(uint64_t length); /* KiB that an object of this length costs */
afs_err vs_quota_check(const struct vs_volume *v, int64_t delta_kib, uint64_t spare_kib);
afs_err vs_space_check(struct vs_partition *p, uint64_t need_kib);

/* tx.c: one verb's transaction */
enum { VS_TX_EDITS = 6 };
enum vs_edit_what { VS_EDIT_SET, VS_EDIT_NEW, VS_EDIT_GONE };
struct vs_edit {
	struct vs_vnode *vn;
	struct vs_row row;  /* as it shall be */
	struct vs_acl *acl; /* as it shall be; NULL: as it is.  Owned */
	enum vs_edit_what what;
};
struct vs_tx {
	struct vs_volume *v;
	wall_ns now;
	struct db_tx db;
	struct vs_edit edit[VS_TX_EDITS];
	unsigned edits;
	struct vs_vnode *dirs[VS_TX_EDITS]; /* whose objects were changed in memory */
	unsigned dirs_n;
	uint64_t unique; /* next uniquifier after this */
	bool judged;     /* quota and space need no look */
	uint64_t *gone;  /* extents whose rows went */
	size_t gone_n, gone_cap;
	uint64_t seq; /* after commit: for vs_volume_settle */
};
void vs_tx_init(struct vs_tx *tx, struct vs_volume *v, wall_ns now);
void vs_tx_cleanup(struct vs_tx *tx); /* without commit: memory is put back as the rows are */
/* The row of `vn` to be changed; the same one when asked again. */
struct vs_row *vs_tx_edit(struct vs_tx *tx, struct vs_vnode *vn);
/* A new vnode with a number, a uniquifier, and nothing else. */
afs_err vs_tx_new(struct vs_tx *tx, enum afs_filetype type, struct vs_vnode **vn);
void vs_tx_gone(struct vs_tx *tx, struct vs_vnode *vn);
/* Before changing vn's directory object. */
void vs_tx_dir(struct vs_tx *tx, struct vs_vnode *vn);
/* Quota and space for the edits so far; then BEGIN, for verbs with statements of their own. */
afs_err vs_tx_begin(struct vs_tx *tx);
afs_err vs_tx_commit(struct vs_tx *tx);
/* Note that an extent lost a reference; its row goes with the last one. */
afs_err vs_tx_unref(struct vs_tx *tx, uint64_t extent);

/* content.c */
struct vs_extent {   /* the living extent at one place of a vnode */
	uint64_t id; /* 0: hole */
	int64_t born;
	uint64_t len;
	bool exclusive; /* no clone sees it and no other row names it */
	uint8_t sums[64 * 4];
	size_t sums_n; /* bytes; 0: none kept */
};
afs_err vs_extent_at(struct vs_volume *v, uint32_t vnode, uint32_t idx, struct vs_extent *out);
/* Let go of all content of a vnode that goes: rows inside tx, which has begun. */
afs_err vs_content_drop(struct vs_tx *tx, struct vs_vnode *vn);
/* Of extents from idx on. */
afs_err vs_extents_drop(struct vs_tx *tx, uint32_t vnode, uint32_t from_idx);
/* Put `extent` at a place, instead of what is there. */
afs_err vs_extent_put(struct vs_tx *tx, uint32_t vnode, uint32_t idx, const struct vs_extent *old,
	uint64_t extent, uint64_t len, const uint8_t *sums, size_t sums_n);
/* Set small content (n bytes) as `row`'s: in place, or a new blob when a clone sees the old. */
afs_err vs_inline_put(struct vs_tx *tx, struct vs_row *row, const void *p, size_t n);
afs_err vs_inline_get(
	struct vs_volume *v, const struct vs_row *row, uint8_t out[VS_INLINE_MAX], size_t *n);
/* Read all n bytes from an extent's descriptor; past its end: zeros. */
afs_err vs_extent_read(int fd, uint64_t pos, void *p, size_t n);
bool vs_write_refused(void); /* the tests' hook: true with errno set */
afs_err vs_pwrite(int fd, const void *p, size_t n, uint64_t pos);

/* write.c */
bool vs_writer_has_locked(
	struct vs_volume *v, uint64_t extent); /* an open store writes that file */
enum { VS_BUFFER = 1048576 };
void *vs_buffer_get(struct vs_buffers *b); /* VS_BUFFER bytes of no meaning, or NULL */
void vs_buffer_put(struct vs_buffers *b, void *p);
void vs_buffers_fini(struct vs_buffers *b);

/* sums.c */
uint32_t vs_crc32c(uint32_t crc, const void *p, size_t n);       /* crc 0 to begin */
uint32_t vs_crc32c_plain(uint32_t crc, const void *p, size_t n); /* without the instruction */

/* tests: let the n-th write to an extent file fail with `eno`; -1: never. */
extern atomic_long vs_fail_write_after;
extern atomic_int vs_fail_write_errno;

DEFINE_CLEANUP_PTR(vs_vnode, struct vs_vnode, vs_vnode_free)
