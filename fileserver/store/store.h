/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The epoch volume store: partitions, volumes, vnodes, directories, content, quota, check.
 *
 * A partition is a directory; vol/<id>/ in it is a volume group (a read-write volume and
 * its clones): meta.db (SQLite, WAL) and data/ (content extents).  Layout:
 * fileserver/store/schema.c.
 *
 * Verbs are atomic: each is one transaction, or (a store of data) content written aside and then
 * named by one transaction.  A verb that returns an error has changed nothing, unless its comment
 * says so.  A verb that returned AFS_OK survives kill -9 of the process (VS_PROCESS) or loss of
 * power (VS_POWER).
 *
 * All functions may be called from any thread.  They wait for local disks, never for a network; a
 * volume's lock is held for the time of one transaction.  Nothing here knows callers' rights: the
 * file server decides first (vs_node has what it needs), then calls one verb.
 *
 * Errors every function may give: AFS_ENOMEM, AFS_EIO, AFS_ECORRUPT (stored data is damaged,
 * logged), AFS_EDISKFULL (partition full; nothing is half done).  Verbs on a volume: AFS_ENOVNODE
 * (no such vnode, or another uniquifier), AFS_EROFS (mutating verb, read-only volume), AFS_EVBUSY
 * / AFS_EVOFFLINE / AFS_ENOVOL (the volume was claimed, taken off line or deleted since
 * vs_volume_enter).
 *
 * Source of the rules: fileserver.md §3, §5, §10, §11; directory.md; volserver.md §3-6; design D4,
 * D12, D13. */
#pragma once
#include "cell/base/clk.h"
#include "cell/base/err.h"
#include "cell/base/mem.h"
#include "cell/proto/fid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vs_store;
struct vs_partition;
struct vs_volume;
struct vs_file;
struct vs_writer;
struct vs_stage;

/* --- store and partitions ------------------------------------------------------------- */

enum vs_durability { VS_PROCESS, VS_POWER };

struct vs_config { /* zero in a size means the default in parentheses */
	enum vs_durability durability;
	size_t vnode_cache;       /* vnodes kept in memory, all volumes together (65536) */
	size_t dir_cache_kib;     /* directory pages kept in memory (32768) */
	unsigned fd_cache;        /* open extent files (256) */
	uint64_t reserve_kib;     /* a partition with less free space counts as full (8192) */
	uint32_t store_spare_kib; /* how far a store of data may overshoot the quota (1024) */
};

afs_err vs_store_open(const struct vs_config *config, struct vs_store **out);
/* Every reference must have been given back.  Checkpoints and closes all. */
void vs_store_close(struct vs_store *s);
static inline void vs_store_cleanup(struct vs_store **s)
{
	if (*s)
		vs_store_close(*s);
}

/* Housekeeping: checkpoints, removal of dropped extents, trimming of caches.  vs_store_keep runs
 * it on the calling thread (cell.c gives it one) until vs_store_stop; vs_store_housekeep does one
 * round.  A store without a keeper still works: commits then pay for checkpoints themselves. */
void vs_store_keep(struct vs_store *s);
void vs_store_stop(struct vs_store *s); /* vs_store_keep returns soon after */
void vs_store_housekeep(struct vs_store *s);

/* Attach the directory `path` (made if missing, its parent must exist) as partition `name`:
 * "a".."z" or "aa".."iu" (id 0..25, 26..254).  Volumes in it are found by their headers and opened
 * when first used.  A volume that cannot be read is logged and listed with its error
 * (vs_volume_list), it does not stop the others.  Half-made leftovers of a crash are removed.
 * AFS_EINVAL: name; AFS_EEXIST: attached already; AFS_EBUSY: another process has it.  The
 * partition lives until vs_store_close. */
afs_err vs_partition_attach(
	struct vs_store *s, const char *name, const char *path, struct vs_partition **out);
struct vs_partition *vs_partition_find(struct vs_store *s, unsigned id); /* NULL: none */
struct vs_partition *vs_partition_next(
	struct vs_store *s, const struct vs_partition *after); /* by id; NULL first/end */
unsigned vs_partition_id(const struct vs_partition *p);
const char *vs_partition_name(const struct vs_partition *p); /* "/vicepa" */
const char *vs_partition_path(const struct vs_partition *p);
/* "a", "vicepa", "/vicepa" -> id; -1 for anything else. */
int vs_partition_id_of(const char *name);
struct vs_space {
	uint64_t total_kib, free_kib; /* what we may use: the reserve is taken off */
};
afs_err vs_partition_space(struct vs_partition *p, struct vs_space *out);

/* --- volumes -------------------------------------------------------------------------- */

enum { VS_MESSAGE_MAX = 1023 };

struct vs_header { /* volserver.md §3, dump-format.md §3 */
	afs_volid id, parent, clone, backup, restored_from;
	enum afs_voltype type;
	char name[AFS_VOLNAME_MAX + 1];
	bool in_service, blessed, destroy_me, needs_salvage;
	uint64_t unique;    /* next uniquifier */
	uint64_t quota_kib; /* 0: no limit */
	uint64_t min_quota_kib;
	uint64_t used_kib; /* blocks of all vnodes; kept exact by the store */
	uint64_t files;    /* vnodes in use, the root included; kept exact by the store */
	int32_t owner;     /* of the root directory */
	uint32_t account;
	wall_ns creation, access, update, expiration, backup_date, copy;
	uint32_t update_counter;
	uint32_t day_use;
	wall_ns day_use_date;
	uint32_t week_use[7];
	char offline_message[VS_MESSAGE_MAX + 1];
};

/* Which fields vs_volume_set_header takes. */
enum vs_header_mask {
	VS_H_NAME = 1 << 0,
	VS_H_TYPE = 1 << 1,
	VS_H_PARENT = 1 << 2,
	VS_H_CLONE = 1 << 3,
	VS_H_BACKUP = 1 << 4,
	VS_H_IN_SERVICE = 1 << 5,
	VS_H_BLESSED = 1 << 6,
	VS_H_DESTROY_ME = 1 << 7,
	VS_H_QUOTA = 1 << 8,
	VS_H_MIN_QUOTA = 1 << 9,
	VS_H_CREATION = 1 << 10,
	VS_H_UPDATE = 1 << 11,
	VS_H_EXPIRATION = 1 << 12,
	VS_H_BACKUP_DATE = 1 << 13,
	VS_H_COPY = 1 << 14,
	VS_H_ACCESS = 1 << 15,
	VS_H_UPDATE_COUNTER = 1 << 16,
	VS_H_DAY_USE = 1 << 17, /* day_use, day_use_date */
	VS_H_WEEK_USE = 1 << 18,
	VS_H_OFFLINE_MESSAGE = 1 << 19,
	VS_H_ACCOUNT = 1 << 20,
	VS_H_RESTORED_FROM = 1 << 21,
	VS_H_UNIQUE = 1 << 22, /* only ever raised */
	VS_H_NEEDS_SALVAGE = 1 << 23,
};

/* How a volume stands towards the file service; in memory only. */
enum vs_claim {
	VS_FREE,       /* served if its header says so */
	VS_CLAIM_READ, /* the volume server reads; still served */
	VS_CLAIM_BUSY, /* callers of the file service get AFS_EVBUSY */
	VS_CLAIM_OFF,  /* ... AFS_EVOFFLINE */
};

/* Make volume `h->id` on `p` from h's id, name, type, parent (0: id), quota and dates that are not
 * zero.  It is born with destroy_me set and out of service: invisible to vs_volume_enter until
 * both are changed. `with_root` makes the root directory (vnode 1.1, mode 0777, owner 0, ACL -204
 * rlidwka).  AFS_EVOLEXISTS: the id is in use on this
 * partition (a move within one server has it twice for a while: vs_volume_enter takes the one in
 * service); AFS_EBADNAME: name empty or longer
 * than 31.  *out is referenced. */
afs_err vs_volume_create(struct vs_partition *p, const struct vs_header *h, bool with_root,
	wall_ns now, struct vs_volume **out);
/* Clones: a volume of the same group that goes on showing what `v` (read-write or a clone) shows now.
 * O(1) whatever the size; verbs on `v` go on.  From `h`: id, name, type (read-only or backup).  Its
 * dates and parent come from v; it is born with destroy_me set and out of service; `v` notes its id
 * (and the backup date).  AFS_EVOLEXISTS: the id is in use on this partition. */
afs_err vs_clone_make(
	struct vs_volume *v, const struct vs_header *h, wall_ns now, struct vs_volume **out);
/* Let `clone` show what read-write volume `v` shows now; it is in service afterwards.  AFS_EXDEV: not
 * on v's partition or not its clone.  Promises made on it must be broken by the caller.  What is open
 * in it ends with AFS_EVBUSY. */
afs_err vs_clone_refresh(struct vs_volume *v, struct vs_volume *clone, wall_ns now);
/* Is it a clone that shares its rows with others? */
bool vs_volume_is_clone(struct vs_volume *v);
/* A read-only volume that stands alone becomes the read-write one of its group: id `parent`, name
 * without ".readonly".  v is gone afterwards.  AFS_EXDEV: it is a clone; AFS_EVOLEXISTS: there is a
 * read-write one on this partition. */
afs_err vs_volume_convert(struct vs_volume *v, wall_ns now);

/* Purge: gone from the tables at once, files removed.  Claimed or not.  References stay valid and
 * every verb on them gives AFS_ENOVOL; the caller still gives its own reference back. */
afs_err vs_volume_delete(struct vs_volume *v);

/* For the file service: AFS_ENOVOL (none, or destroy_me), AFS_EVOFFLINE (not blessed, out of
 * service, claimed), AFS_EVBUSY, AFS_EVSALVAGE. */
afs_err vs_volume_enter(struct vs_store *s, afs_volid id, struct vs_volume **out);
/* The same for a thread that must not wait: AFS_EWAIT as vs_node_peek. */
afs_err vs_volume_peek(struct vs_store *s, afs_volid id, struct vs_volume **out);
/* For the volume server: in any state.  `p` NULL: any partition.  AFS_ENOVOL; AFS_EVSALVAGE:
 * cannot be read. */
afs_err vs_volume_find(
	struct vs_store *s, const struct vs_partition *p, afs_volid id, struct vs_volume **out);
void vs_volume_ref(struct vs_volume *v);
void vs_volume_unref(struct vs_volume *v);
static inline void vs_volume_cleanup(struct vs_volume **v)
{
	if (*v)
		vs_volume_unref(*v);
}

/* One claim at a time: AFS_EVOLTRANS.  VS_FREE gives the claim back.  Verbs in progress end first;
 * stores of data that are open when VS_CLAIM_BUSY or _OFF comes end with AFS_EVBUSY /
 * AFS_EVOFFLINE, nothing changed.  Verbs of the claimer itself (vs_stage_*, vs_file_open_claimed,
 * vs_vnode_next, headers) go on. */
afs_err vs_volume_claim(struct vs_volume *v, enum vs_claim claim);
enum vs_claim vs_volume_claimed(struct vs_volume *v);
/* Is the file service serving it now? */
bool vs_volume_online(struct vs_volume *v);

afs_volid vs_volume_id(const struct vs_volume *v);
struct vs_partition *vs_volume_partition(const struct vs_volume *v);
afs_err vs_volume_header(struct vs_volume *v, struct vs_header *out);
afs_err vs_volume_set_header(struct vs_volume *v, const struct vs_header *h, uint32_t mask);
/* The file service served one access: counted in day_use, written now and then. */
void vs_volume_count_use(struct vs_volume *v, wall_ns now);

struct vs_listed {
	afs_volid id;
	afs_err err; /* why it cannot be opened, or AFS_OK */
};
/* All volumes of a partition by ascending id; *out is the caller's (mem_free). */
afs_err vs_volume_list(struct vs_partition *p, struct vs_listed **out, size_t *n);

/* --- vnodes --------------------------------------------------------------------------- */

struct vs_fid { /* within a volume */
	uint32_t vnode, unique;
};
static inline struct vs_fid vs_fid(const struct AFSFid *f)
{
	return (struct vs_fid){f->Vnode, f->Unique};
}

struct vs_status {
	struct vs_fid fid;
	struct vs_fid parent; /* the directory it is in; root: {0, 0} */
	enum afs_filetype type;
	uint32_t mode; /* 07777 */
	int32_t owner, group, author;
	uint32_t links;  /* files: names; directory: 2 + subdirectories */
	uint64_t length; /* directory: pages * 2048; symlink: of the text */
	uint64_t dv;
	wall_ns client_mtime, server_mtime;
};

enum { VS_ACL_MAX = 20, VS_ACL_BYTES = 192 };
struct vs_acl { /* positive entries first; each part by ascending id, an id once per part */
	uint8_t positive, negative;
	struct vs_ace {
		int32_t id;
		uint32_t rights;
	} e[VS_ACL_MAX];
};
/* The block of dumps (dump-format.md §4.1).  unpack: AFS_EINVAL for counts that do not fit. */
void vs_acl_pack(const struct vs_acl *acl, uint8_t out[VS_ACL_BYTES]);
afs_err vs_acl_unpack(const uint8_t in[VS_ACL_BYTES], struct vs_acl *out);
/* Sort and check: AFS_EINVAL for an id twice in a part, AFS_ETOOBIG for more than 20. */
afs_err vs_acl_normalise(struct vs_acl *acl);

/* A vnode, with what an access check needs, in one step and from memory when it is warm. */
struct vs_node {
	struct vs_status st;
	struct vs_acl acl; /* its own for a directory, else its parent directory's */
	enum afs_voltype volume_type;
	int32_t volume_owner;
	wall_ns volume_creation; /* AFSVolSync.spare1 */
	uint64_t version;        /* vs_volume_version() at that moment */
};
afs_err vs_node_get(struct vs_volume *v, struct vs_fid fid, struct vs_node *out);

/* vs_volume_enter (when *vol is NULL), vs_volume_count_use (unless `now` is 0) and vs_node_get
 * together, for a thread that must not wait: AFS_EWAIT when another holds the volume or something
 * would have to be read from disk, with nothing done.  On AFS_OK *vol is referenced. */
afs_err vs_node_peek(struct vs_store *s, afs_volid id, struct vs_fid fid, wall_ns now,
	struct vs_volume **vol, struct vs_node *out);

/* Several at once, each with its own error; the volume's own for all.  As vs_node_peek when `peek`.
 * AFS_EWAIT is always for all. */
enum { VS_NODES_MAX = 64 };
afs_err vs_nodes_get(struct vs_volume *v, const struct vs_fid *fids, size_t n, bool peek,
	struct vs_node *out, afs_err *errs);
/* Moves with every change of the volume, before the change is seen: what was read at the version that
 * is still the present one is the newest. */
uint64_t vs_volume_version(const struct vs_volume *v);

/* A name in a directory.  AFS_ENOTDIR, AFS_ENOENT.  "." and ".." are found. */
afs_err vs_lookup(struct vs_volume *v, struct vs_fid dir, const char *name, struct vs_fid *out);

/* Who does it and when: becomes author, owner of what is made, and the times. */
struct vs_who {
	wall_ns now;
	int32_t id; /* AFS_ANONYMOUS for nobody */
};

enum vs_set_mask {
	VS_SET_MTIME = 1,
	VS_SET_OWNER = 2,
	VS_SET_GROUP = 4,
	VS_SET_MODE = 8
}; /* as AFSStoreStatus.Mask */
struct vs_set {
	uint32_t mask; /* other bits are ignored */
	wall_ns mtime;
	int32_t owner, group;
	uint32_t mode; /* 07777 is used */
};

/* Names in the verbs that make one: AFS_EINVAL for "", ".", "..", '/' inside or "@sys" at the end,
 * AFS_ENAMETOOLONG past 255 bytes.  The directory: AFS_ENOTDIR.  A full directory object:
 * AFS_EFBIG.  Quota: AFS_EOVERQUOTA. */
struct vs_made {
	struct vs_status node, dir;
};
afs_err vs_create_file(struct vs_volume *v, struct vs_fid dir, const char *name,
	const struct vs_who *who, const struct vs_set *set, struct vs_made *out); /* AFS_EEXIST */
/* The new directory has the parent's ACL. */
afs_err vs_make_dir(struct vs_volume *v, struct vs_fid dir, const char *name,
	const struct vs_who *who, const struct vs_set *set, struct vs_made *out);
/* `text` of n bytes, 1..1024, no NUL (AFS_EINVAL).  A mode without x bits makes a mount point: the
 * caller has judged. */
afs_err vs_make_symlink(struct vs_volume *v, struct vs_fid dir, const char *name, const char *text,
	size_t n, const struct vs_who *who, const struct vs_set *set, struct vs_made *out);
/* Another name in the same directory.  AFS_EXDEV: file is in another directory; AFS_EISDIR: not a
 * plain file; AFS_EMLINK. */
afs_err vs_link(struct vs_volume *v, struct vs_fid dir, const char *name, struct vs_fid file,
	const struct vs_who *who, struct vs_made *out);

struct vs_removed {
	struct vs_status dir;
	struct vs_status node; /* as it is now; as it was last when freed */
	bool freed;            /* its last name went: the fid is dead */
};
/* A file or symlink: AFS_ENOENT, AFS_EISDIR, AFS_EINVAL for "." and "..". */
afs_err vs_remove(struct vs_volume *v, struct vs_fid dir, const char *name,
	const struct vs_who *who, struct vs_removed *out);
/* An empty directory: AFS_ENOTDIR, AFS_ENOTEMPTY. */
afs_err vs_remove_dir(struct vs_volume *v, struct vs_fid dir, const char *name,
	const struct vs_who *who, struct vs_removed *out);

struct vs_renamed {
	struct vs_status old_dir, new_dir; /* equal when it is one directory */
	struct vs_status moved; /* a directory that changed parents: its ".." and DV moved too */
	bool dotdot_changed;
	bool replaced, replaced_freed; /* what had the new name, and whether its last name went */
	struct vs_status replaced_node;
};
/* Checks in the order of fileserver.md §5.  `may_replace`: the caller may delete in new_dir; when
 * it may not and the new name exists: AFS_EACCES.  AFS_ELOOP: the source is one of the two
 * directories, or new_dir is below it; AFS_EXDEV: a file with several links to another directory;
 * AFS_EINVAL: both names are one object; AFS_EISDIR, AFS_ENOTDIR, AFS_ENOTEMPTY. */
afs_err vs_rename(struct vs_volume *v, struct vs_fid old_dir, const char *old_name,
	struct vs_fid new_dir, const char *new_name, bool may_replace, const struct vs_who *who,
	struct vs_renamed *out);

/* AFS_EINVAL: mode of a symlink.  The root directory's owner is the volume's.  Judging chown and
 * set-id is the caller's. */
afs_err vs_set_status(struct vs_volume *v, struct vs_fid fid, const struct vs_set *set,
	const struct vs_who *who, struct vs_status *out);
/* AFS_ENOTDIR; AFS_EINVAL / AFS_ETOOBIG as vs_acl_normalise. */
afs_err vs_set_acl(struct vs_volume *v, struct vs_fid dir, const struct vs_acl *acl,
	const struct vs_who *who, struct vs_status *out);

/* --- content -------------------------------------------------------------------------- */

/* Open for reading: files, symlinks (the text), directories (a copy of the object, byte for byte).
 * *st is the status that the data belongs to: send this one.  Register the callback promise BEFORE
 * opening: a store that commits while the file is read may show through, and the broken promise is
 * what tells the client. */
afs_err vs_file_open(
	struct vs_volume *v, struct vs_fid fid, struct vs_status *st, struct vs_file **out);
/* For whoever holds a claim: not stopped by it. */
afs_err vs_file_open_claimed(
	struct vs_volume *v, struct vs_fid fid, struct vs_status *st, struct vs_file **out);
/* Up to n bytes at pos (zeros for holes), fewer only at the end of the file as it was opened:
 * *got.  Copies once, into p. AFS_ENOVNODE: the file was removed meanwhile. */
afs_err vs_file_read(struct vs_file *f, uint64_t pos, void *p, size_t n, size_t *got);
void vs_file_close(struct vs_file *f); /* also gives the volume's reference back */
static inline void vs_file_cleanup(struct vs_file **f)
{
	if (*f)
		vs_file_close(*f);
}

/* StoreData (fileserver.md §3, steps 1-4).  Nobody sees anything of it before vs_write_end.  How
 * safe it is then is the store's durability; the wire's FSYNC bit asks for no more than that. */
struct vs_write {
	uint64_t pos, length, file_length; /* as announced: the wire's three */
	const struct vs_set *set;          /* NULL: none */
	bool keep_setid;                   /* the caller is an administrator: 06000 stays */
};
/* AFS_EISDIR: not a plain file; AFS_EFBIG: a file would be larger than 2^54 bytes; AFS_EOVERQUOTA,
 * AFS_EDISKFULL judged on what was announced. */
afs_err vs_write_begin(struct vs_volume *v, struct vs_fid fid, const struct vs_write *w,
	const struct vs_who *who, struct vs_writer **out);
/* The next n bytes, in order.  More than announced: AFS_EINVAL.  Any error sticks: vs_write_end
 * then gives it and nothing changes. */
afs_err vs_write_put(struct vs_writer *w, const void *p, size_t n);
/* Commit what came (all, or less when the client stopped early: DV moves on all the same).  Frees
 * w in every case.  AFS_EIO may mean that DV moved on and part of an overwritten range is new: the
 * client must look again, as the protocol says. */
afs_err vs_write_end(struct vs_writer *w, const struct vs_who *who, struct vs_status *out);
/* Forget it: nothing changes. */
void vs_write_cancel(struct vs_writer *w);

/* --- for dumps and restores ----------------------------------------------------------- */

/* The next vnode with a number above `after`: all odd ones (directories) or all even ones.
 * AFS_ENOENT: no more.  Not stopped by a claim.  acl is set for directories only. */
afs_err vs_vnode_next(struct vs_volume *v, bool directories, uint32_t after, struct vs_status *st,
	struct vs_acl *acl);

/* Build new content for a volume beside it, then swap it in.  Until vs_stage_commit the volume is
 * as it was; a crash, an error or vs_stage_free leave it so.  The caller holds the claim. */
afs_err vs_stage_begin(struct vs_volume *v, struct vs_stage **out);
/* The next vnode, complete: status, ACL (directories; else NULL) and then its content by
 * vs_stage_put.  Refused with AFS_EBADDUMP: number 0, wrong parity for the type, a type not 1..3,
 * the number again.  st->length is ignored: content decides. */
afs_err vs_stage_vnode(struct vs_stage *g, const struct vs_status *st, const struct vs_acl *acl);
/* An incremental dump's bare record: keep the volume's present vnode as it is; none there: nothing
 * happens. */
afs_err vs_stage_keep(struct vs_stage *g, struct vs_fid fid);
/* More bytes of the vnode given last.  AFS_EBADDUMP: a directory or symlink too long. */
afs_err vs_stage_put(struct vs_stage *g, const void *p, size_t n);
/* Verify everything (directories parsed and rebuilt where their form, not their meaning, is off;
 * every name leads to a vnode of the right kind; link counts and parents are set right; a vnode
 * that no name leads to is logged and left out), give the volume the header fields of `h` that
 * `mask` names, swap.  AFS_EBADDUMP with the reason in `why` (at least VS_WHY bytes): the volume
 * is as it was. */
enum { VS_WHY = 200 };
afs_err vs_stage_commit(
	struct vs_stage *g, const struct vs_header *h, uint32_t mask, wall_ns now, char *why);
/* Free, after commit or instead of it. */
void vs_stage_free(struct vs_stage *g);
static inline void vs_stage_cleanup(struct vs_stage **g)
{
	if (*g)
		vs_stage_free(*g);
}

/* --- check ---------------------------------------------------------------------------- */

enum vs_finding_kind {
	VS_F_DB,      /* the database itself: integrity, schema, epochs */
	VS_F_ROW,     /* a vnode row: type, parity, uniquifier, ranges */
	VS_F_DIR,     /* a directory object: pages, bitmap, chains, entries */
	VS_F_ENTRY,   /* an entry that leads nowhere or to the wrong kind */
	VS_F_LINKS,   /* link counts */
	VS_F_PARENT,  /* parent pointers and ".." */
	VS_F_LOST,    /* a vnode no name leads to */
	VS_F_CONTENT, /* content missing, too short, with a wrong checksum */
	VS_F_ORPHAN,  /* rows or files nobody names */
	VS_F_QUOTA,   /* sums in the header */
};
struct vs_finding {
	enum vs_finding_kind kind;
	struct vs_fid fid; /* {0, 0} when it is about the volume */
	char text[200];    /* printable */
};
/* Prove a volume right, on line: works on a snapshot, verbs go on meanwhile.  Calls `found` (may
 * be NULL) for each finding, *n is their number. */
afs_err vs_check(struct vs_volume *v, void (*found)(void *ctx, const struct vs_finding *f),
	void *ctx, size_t *n);
