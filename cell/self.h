/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The cell as a client of its own databases: VL and PT in this process are asked directly, those
 * on other machines by calls with a token that the cell makes itself.
 *
 * Every call may wait, for the disk or the network, tries the database servers in turn, and may be made
 * from any thread but a port's own. */
#pragma once
#include "cell/base/err.h"
#include "cell/keys/keys.h"
#include "cell/proto/pt.h"
#include "cell/proto/vl.h"
#include "dbserver/dbserver.h"
#include "rx/io/port.h"

enum { SELF_SERVERS_MAX = 16 };

struct self;
struct self_config {
	struct pt *pt_here; /* NULL: elsewhere, at `pt` below */
	struct vl *vl_here;
	struct keys *keys;
	struct rx_buf_pool *pool;
	uint32_t ip; /* to call from; 0: any */
	struct rx_addr pt[SELF_SERVERS_MAX], vl[SELF_SERVERS_MAX];
	size_t pt_count, vl_count;
	enum rx_sec_level level;
};
/* AFS_ENOENT: there is no key to make a token with; AFS_ENOMEM, and those of rpc_port_open. */
afs_err self_open(const struct self_config *config, struct self **out);
void self_close(struct self *s);

/* --- protection database ------------------------------------------------------------------ */

/* AFS_ENOENT: nobody has that name, or id. */
afs_err self_id_of(struct self *s, const char *name, int32_t *id);
afs_err self_name_of(struct self *s, int32_t id, char out[AFS_PRNAME_MAX + 1]);
/* `id` 0: the next free one; *out is what it became.  AFS_EEXIST: name or id is in use. */
afs_err self_user_add(struct self *s, const char *name, int32_t id, int32_t *out);
afs_err self_group_add(struct self *s, const char *name, int32_t id, int32_t owner, int32_t *out);
afs_err self_owner(struct self *s, int32_t id, int32_t *owner);
afs_err self_group_owner(struct self *s, int32_t gid, int32_t owner);
afs_err self_is_member(struct self *s, int32_t uid, int32_t gid, bool *is);
afs_err self_member_add(struct self *s, int32_t uid, int32_t gid);
/* AFS_ENOENT: no such member, group or membership. */
afs_err self_member_remove(struct self *s, int32_t uid, int32_t gid);
/* The entry and every membership of it.  AFS_ENOENT. */
afs_err self_entry_delete(struct self *s, int32_t id);
/* AFS_ENOENT. */
afs_err self_entry_find(struct self *s, int32_t id, struct prcheckentry *out);
/* Every entry, in no order: `each` may stop by an error, which comes back. */
afs_err self_entry_each(struct self *s, afs_err (*each)(void *ctx, const struct prcheckentry *e), void *ctx);
/* Members of a group, or groups of a user; *ids is the caller's (mem_free). */
afs_err self_members(struct self *s, int32_t id, int32_t **ids, uint32_t *n);
/* The ids that an ACL may name for `id`, ascending; *ids is the caller's (mem_free).  Only for a PT that
 * is elsewhere. */
afs_err self_cps(struct self *s, int32_t id, int32_t **ids, uint32_t *n);
afs_err self_host_cps(struct self *s, uint32_t ip, int32_t **ids, uint32_t *n);

/* --- volume location database ------------------------------------------------------------- */

/* `name` may be a number.  AFS_ENOENT. */
afs_err self_volume_find(struct self *s, const char *name, struct nvldbentry *out);
afs_err self_volume_new_id(struct self *s, afs_volid *out);
/* Enter a read-write volume on one server (its registered address) and partition. */
afs_err self_volume_enter(struct self *s, const char *name, afs_volid id, uint32_t ip, unsigned partition);
/* Tell VL about a file server. */
afs_err self_register(struct self *s, const struct afsUUID *uuid, const uint32_t *ips, size_t n);
