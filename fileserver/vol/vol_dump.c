/* SPDX-License-Identifier: BSD-2-Clause
 * Dump, DumpV2, GetSize, Forward and ForwardMultiple: one walk over the volume's vnodes, directories
 * first, each by ascending number, into a sink: calls that it writes to, or none, when it only counts.  The volume is held by a transaction
 * in which the file service changes nothing, so the walk sees one state. */
#include "fileserver/vol/dump.h"
#include "fileserver/vol/vol.h"
#include "fileserver/vol/vol_handlers.h"

#include "cell/base/log.h"
#include "cell/proto/abort.h"

#include <stdio.h>
#include <string.h>

enum { DESTS = 13, COPY = 256 * 1024 };

struct sink {
	struct rpc_call *call; /* NULL: only count, or `dest` */
	struct dest {
		struct rpc_conn *conn;
		struct rpc_call *call;
		afs_err err; /* the first; it gets no more */
		int32_t code;
	} * dest;
	unsigned dests;
	uint8_t *copy; /* COPY bytes, for content that goes to `dest` */
	uint64_t count;
};

/* To all that have not failed.  An error when none is left. */
static afs_err emit_dests(struct sink *s, const void *p, size_t n)
{
	unsigned left = 0;
	for (unsigned i = 0; i < s->dests; i++) {
		struct dest *d = &s->dest[i];
		if (!d->err && d->call)
			d->err = rpc_write(d->call, p, n);
		left += !d->err;
	}
	return left ? AFS_OK : AFS_EABORTED;
}

static afs_err emit(struct sink *s, const void *p, size_t n)
{
	s->count += n;
	if (s->dests)
		return emit_dests(s, p, n);
	return s->call ? rpc_write(s->call, p, n) : AFS_OK;
}

static afs_err copy_content(struct sink *s, struct vs_file *f, struct vs_volume *vol, const struct vs_status *st)
{
	for (uint64_t pos = 0; pos < st->length;) {
		size_t got;
		TRY(vs_file_read(f, pos, s->copy, (size_t)MIN(st->length - pos, (uint64_t)COPY), &got));
		if (!got)
			return log_error(AFS_ECORRUPT, "vol.forward.short_content volume=%u vnode=%u pos=%llu",
				vs_volume_id(vol), st->fid.vnode, (unsigned long long)pos);
		TRY(emit(s, s->copy, got));
		pos += got;
	}
	return AFS_OK;
}

/* The content, read straight into the packets that leave. */
static afs_err emit_content(struct sink *s, struct vs_volume *vol, const struct vs_status *st)
{
	if (!s->call && !s->dests) {
		s->count += st->length;
		return AFS_OK;
	}
	CLEANUP(vs_file) struct vs_file *f = NULL;
	struct vs_status now;
	TRY(vs_file_open_claimed(vol, st->fid, &now, &f));
	if (now.length != st->length)
		return log_error(AFS_EIO, "vol.dump.changed_meanwhile volume=%u vnode=%u", vs_volume_id(vol),
			st->fid.vnode);
	if (s->dests)
		return copy_content(s, f, vol, st);
	for (uint64_t pos = 0; pos < st->length;) {
		uint8_t *room;
		size_t n, got;
		TRY(rpc_write_room(s->call, (size_t)MIN(st->length - pos, (uint64_t)1 << 20), &room, &n));
		TRY(vs_file_read(f, pos, room, n, &got));
		if (!got) /* a short content must not become a dump that looks whole */
			return log_error(AFS_ECORRUPT, "vol.dump.short_content volume=%u vnode=%u pos=%llu",
				vs_volume_id(vol), st->fid.vnode, (unsigned long long)pos);
		TRY(rpc_write_commit(s->call, got));
		pos += got;
		s->count += got;
	}
	return AFS_OK;
}

static afs_err emit_vnode(struct sink *s, struct vs_volume *vol, const struct vs_status *st,
	const struct vs_acl *acl, bool whole)
{
	uint8_t out[DUMP_VNODE_SIZE];
	struct dump_vnode v = {.vnode = st->fid.vnode, .unique = st->fid.unique, .keep = !whole};
	if (!whole)
		return emit(s, out, dump_put_vnode(out, &v));
	v.type = (uint8_t)st->type;
	v.links = (uint16_t)MIN(st->links, (uint32_t)UINT16_MAX);
	v.mode = (uint16_t)(st->mode & 07777);
	v.data_version = (uint32_t)st->dv;
	v.mtime = clk_wire_sec(st->client_mtime);
	v.author = (uint32_t)st->author;
	v.owner = (uint32_t)st->owner;
	v.group = (uint32_t)st->group;
	v.parent = st->parent.vnode;
	v.server_mtime = clk_wire_sec(st->server_mtime);
	v.has_acl = st->type == AFS_DIR;
	if (v.has_acl)
		vs_acl_pack(acl, v.acl);
	v.has_data = true;
	v.data_len = st->length;
	TRY(emit(s, out, dump_put_vnode(out, &v)));
	return emit_content(s, vol, st);
}

static afs_err emit_all(struct sink *s, struct vs_volume *vol, bool directories, uint32_t from, bool all)
{
	struct vs_status st = {0};
	struct vs_acl acl;
	for (uint32_t after = 0;; after = st.fid.vnode) {
		afs_err err = vs_vnode_next(vol, directories, after, &st, &acl);
		if (err == AFS_ENOENT)
			return AFS_OK;
		TRY(err);
		TRY(emit_vnode(s, vol, &st, &acl, all || clk_wire_sec(st.server_mtime) >= from));
	}
}

static uint32_t date_of(const struct vs_header *h)
{
	if (h->type == AFS_VOL_RW)
		return clk_wire_sec(h->update);
	if (h->type == AFS_VOL_BK && h->backup_date)
		return clk_wire_sec(h->backup_date);
	return clk_wire_sec(h->creation);
}

static afs_err emit_volume(struct sink *s, struct vs_volume *vol, uint32_t from, bool omit_dirs)
{
	uint8_t out[DUMP_HEADER_SIZE];
	struct vs_header h;
	TRY(vs_volume_header(vol, &h));
	struct dump_header head = {.volume = h.id, .from = from, .to = date_of(&h)};
	struct dump_volume v = {
		.id = h.id, .parent = h.parent, .clone = h.clone, .next_unique = (uint32_t)h.unique,
		.max_quota = (uint32_t)MIN(h.quota_kib, (uint64_t)INT32_MAX),
		.min_quota = (uint32_t)MIN(h.min_quota_kib, (uint64_t)INT32_MAX),
		.disk_used = (uint32_t)MIN(h.used_kib, (uint64_t)INT32_MAX),
		.file_count = (uint32_t)MIN(h.files, (uint64_t)INT32_MAX),
		.account = h.account, .owner = (uint32_t)h.owner,
		.creation = clk_wire_sec(h.creation), .access = clk_wire_sec(h.access),
		.update = clk_wire_sec(h.update), .expiration = clk_wire_sec(h.expiration),
		.backup = clk_wire_sec(h.backup_date), .day_use = h.day_use,
		.day_use_date = clk_wire_sec(h.day_use_date), .type = (uint8_t)h.type,
		.in_service = h.in_service, .blessed = h.blessed,
	};
	memcpy(v.week_use, h.week_use, sizeof(v.week_use));
	snprintf(head.name, sizeof(head.name), "%s", h.name);
	snprintf(v.name, sizeof(v.name), "%s", h.name);
	/* longer messages do not fit what other servers read */
	memcpy(v.offline_message, h.offline_message, strnlen(h.offline_message, 127));
	TRY(emit(s, out, dump_put_header(out, &head, &v)));
	TRY(emit_all(s, vol, true, from, from == 0 || !omit_dirs));
	TRY(emit_all(s, vol, false, from, from == 0));
	return emit(s, out, dump_put_end(out));
}

static afs_err dump(struct rpc_call *call, int32_t tid, uint32_t from, bool omit_dirs)
{
	CLEANUP(vol_held) struct vol_held h = {0};
	TRY(vol_hold(call, tid, "Dump", &h));
	struct sink s = {.call = call};
	afs_err err = emit_volume(&s, h.tr->volume, from, omit_dirs);
	log_info("vol.dump.ended volume=%u trans=%d from=%u bytes=%llu err=%s", h.tr->volid, tid, from,
		(unsigned long long)s.count, afs_err_name(err));
	return vol_noted(&h, err);
}

afs_err vol_dump(struct rpc_call *call, const struct vol_dump_in *in, struct vol_dump_out *out)
{
	(void)out;
	return dump(call, in->trans, in->from, false);
}

afs_err vol_dump_v2(struct rpc_call *call, const struct vol_dump_v2_in *in, struct vol_dump_v2_out *out)
{
	(void)out;
	return dump(call, in->trans, in->from, in->flags & VOL_DUMP_OMIT_DIRS);
}

afs_err vol_get_size(struct rpc_call *call, const struct vol_get_size_in *in, struct vol_get_size_out *out)
{
	CLEANUP(vol_held) struct vol_held h = {0};
	struct sink s = {0};
	TRY(vol_hold(call, in->trans, "GetSize", &h));
	TRY(emit_volume(&s, h.tr->volume, in->from, false));
	out->dump_size = s.count;
	return AFS_OK;
}

/* --- to other servers ------------------------------------------------------------------ */

static void dest_begin(struct volserver *v, struct dest *d, const struct vol_dest *to, int32_t trans, uint32_t from,
	const struct restoreCookie *cookie)
{
	const struct vol_restore_in in = {.trans = trans, .flags = from != 0, .cookie = *cookie};
	const struct rx_addr addr = {.ip = to->destHost, .port = (uint16_t)to->destPort};
	if (to->destPort <= 0 || to->destPort > UINT16_MAX)
		d->err = AFS_EINVAL;
	else if (!v->config.connect)
		d->err = AFS_ENOTSUP;
	if (!d->err)
		d->err = v->config.connect(v->config.ctx, addr, &d->conn);
	if (!d->err)
		d->err = rpc_begin(d->conn, &vol_iface.procs[vol_op_restore], &in, &d->call);
}

/* `whole`: everything was sent; else the other side must not take what it has for a dump. */
static void dest_end(struct dest *d, bool whole)
{
	struct vol_restore_out out;
	struct rpc_result res = {0};
	if (d->call && (whole || d->err)) {
		afs_err err = rpc_end(d->call, &out, &res); /* tells why it failed */
		d->code = res.code;
		if (err)
			d->err = err;
	} else if (d->call) {
		rpc_cancel(d->call);
	}
	if (d->conn)
		rpc_conn_unref(d->conn);
}

static afs_err send_to(struct volserver *v, struct vs_volume *vol, uint32_t from, const struct restoreCookie *cookie,
	const struct vol_replica *to, struct dest *dest, unsigned n)
{
	CLEANUP(heap) uint8_t *copy = mem_alloc(COPY, 1);
	struct sink s = {.dest = dest, .dests = n, .copy = copy};
	if (!copy)
		return AFS_ENOMEM;
	for (unsigned i = 0; i < n; i++)
		dest_begin(v, &dest[i], &to[i].server, to[i].trans, from, cookie);
	afs_err err = emit_volume(&s, vol, from, true);
	for (unsigned i = 0; i < n; i++)
		dest_end(&dest[i], !err);
	log_info("vol.forward.ended volume=%u from=%u to=%u bytes=%llu err=%s", vs_volume_id(vol), from, n,
		(unsigned long long)s.count, afs_err_name(err));
	return err;
}

static int32_t code_of(const struct dest *d, afs_err all)
{
	if (d->code)
		return d->code;
	return d->err ? abort_of_vol(d->err) : all ? abort_of_vol(all) : 0;
}

afs_err vol_forward(struct rpc_call *call, const struct vol_forward_in *in, struct vol_forward_out *out)
{
	(void)out;
	CLEANUP(vol_held) struct vol_held h = {0};
	const struct vol_replica to = {.trans = in->destTrans, .server = in->destination};
	struct dest d = {0};
	TRY(vol_hold(call, in->fromTrans, "Forward", &h));
	afs_err err = send_to(h.v, h.tr->volume, in->fromDate, &in->cookie, &to, &d, 1);
	if (!err && !d.err)
		return AFS_OK;
	(void)vol_noted(&h, err ? err : d.err);
	return rpc_refuse(call, code_of(&d, err));
}

afs_err vol_forward_multiple(
	struct rpc_call *call, const struct vol_forward_multiple_in *in, struct vol_forward_multiple_out *out)
{
	CLEANUP(vol_held) struct vol_held h = {0};
	struct dest d[DESTS] = {0};
	unsigned n = MIN(in->destinations.n, (uint32_t)DESTS);
	TRY(vol_hold(call, in->fromTrans, "ForwardMulti", &h));
	out->results.v = arena_alloc(call->arena, n + 1, sizeof(*out->results.v));
	if (!out->results.v)
		return AFS_ENOMEM;
	afs_err err = n ? send_to(h.v, h.tr->volume, in->fromDate, &in->cookie, in->destinations.v, d, n) : AFS_OK;
	out->results.n = n;
	for (unsigned i = 0; i < n; i++)
		out->results.v[i] = code_of(&d[i], err);
	return err == AFS_EABORTED ? AFS_OK : vol_noted(&h, err); /* each has its own code */
}
