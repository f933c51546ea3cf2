/* SPDX-License-Identifier: BSD-2-Clause
 * Servers and their addresses.  Always true: an address belongs to one slot; addresses of a slot are
 * numbered from 0 without gaps. */
#include "dbserver/vl/vl_store.h"

#include "dbserver/vl/vl_sql.h"

static afs_err read_server(struct db *db, struct db_rows rows, struct vl_server *out)
{
	{
		CLEANUP(db_rows) struct db_rows r = rows;
		if (!db_next(&r))
			return r.err ? r.err : AFS_ENOENT;
		*out = (struct vl_server){
			.slot = (uint8_t)db_int(&r, 0), .uniq = (int32_t)db_int(&r, 2)};
		size_t n;
		const void *uuid = db_blob(&r, 1, &n);
		out->registered = n == sizeof(out->uuid);
		if (out->registered)
			memcpy(out->uuid, uuid, n);
	}
	CLEANUP(db_rows) struct db_rows a = db_query(db, VS_SERVER_ADDRS, DB_INT(out->slot));
	while (db_next(&a)) {
		if (out->n == VL_ADDRS_MAX)
			return AFS_ECORRUPT;
		out->ip[out->n++] = (uint32_t)db_int(&a, 0);
	}
	return a.err;
}

afs_err vl_server_by_slot(struct db *db, int slot, struct vl_server *out)
{
	return read_server(db, db_query(db, VS_SERVER_BY_SLOT, DB_INT(slot)), out);
}

afs_err vl_server_by_ip(struct db *db, uint32_t ip, struct vl_server *out)
{
	return read_server(db, db_query(db, VS_SERVER_BY_IP, DB_INT(ip)), out);
}

afs_err vl_server_by_uuid(struct db *db, const uint8_t uuid[16], struct vl_server *out)
{
	return read_server(db, db_query(db, VS_SERVER_BY_UUID, DB_BLOB(uuid, 16)), out);
}

/* The lowest slot that is not taken. */
static afs_err free_slot(struct db *db, uint8_t *slot)
{
	CLEANUP(db_rows) struct db_rows r = db_query(db, VS_SERVER_SLOTS);
	int64_t want = 1;
	while (db_next(&r) && db_int(&r, 0) == want)
		want++;
	if (r.err)
		return r.err;
	if (want > VL_SERVERS_MAX)
		return AFS_EVBADSERVER;
	*slot = (uint8_t)want;
	return AFS_OK;
}

static struct db_value uuid_value(const struct vl_server *s)
{
	return s->registered ? DB_BLOB(s->uuid, sizeof(s->uuid)) : DB_NULL;
}

/* Writes the addresses of `s`; none of them may belong to another slot by now. */
static afs_err write_addrs(struct vl_write *w, const struct vl_server *s)
{
	TRY(db_run(w->db, VS_ADDRS_DELETE, DB_INT(s->slot)));
	for (uint32_t i = 0; i < s->n; i++)
		TRY(db_run(w->db, VS_ADDR_INSERT, DB_INT(s->slot), DB_INT(i), DB_INT(s->ip[i])));
	return AFS_OK;
}

static afs_err update_server(struct vl_write *w, const struct vl_server *s)
{
	TRY(db_run(w->db, VS_SERVER_UPDATE, DB_INT(s->slot), uuid_value(s), DB_INT(s->uniq)));
	return write_addrs(w, s);
}

static afs_err insert_server(struct vl_write *w, struct vl_server *s)
{
	TRY(free_slot(w->db, &s->slot));
	TRY(db_run(w->db, VS_SERVER_INSERT, DB_INT(s->slot), uuid_value(s), DB_INT(s->uniq)));
	return write_addrs(w, s);
}

/* 0 is nobody; 255/8 is how lists show registered servers. */
static bool ip_ok(uint32_t ip) { return ip && ip >> 24 != 255; }

afs_err vl_server_for_ip(struct vl_write *w, uint32_t ip, struct vl_server *out)
{
	if (!ip_ok(ip))
		return AFS_EVBADSERVER;
	afs_err err = vl_server_by_ip(w->db, ip, out);
	if (err != AFS_ENOENT)
		return err;
	*out = (struct vl_server){.n = 1, .ip = {ip}};
	return insert_server(w, out);
}

static bool has_ip(const struct vl_server *s, uint32_t ip)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->ip[i] == ip)
			return true;
	return false;
}

static uint32_t shared_ips(const struct vl_server *a, const struct vl_server *b)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < a->n; i++)
		n += has_ip(b, a->ip[i]);
	return n;
}

/* The other servers that have an address of `want`. */
static afs_err find_overlaps(struct db *db, const struct vl_server *want, uint8_t own_slot,
	struct vl_server *out, uint32_t *count)
{
	*count = 0;
	for (uint32_t i = 0; i < want->n; i++) {
		struct vl_server s;
		afs_err err = vl_server_by_ip(db, want->ip[i], &s);
		if (err == AFS_ENOENT || (!err && s.slot == own_slot))
			continue;
		if (err)
			return err;
		uint32_t k = 0;
		while (k < *count && out[k].slot != s.slot)
			k++;
		if (k == *count)
			out[(*count)++] = s;
	}
	return AFS_OK;
}

/* `other` gives up what `want` takes. */
static afs_err give_up(struct vl_write *w, struct vl_server *other, const struct vl_server *want)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < other->n; i++)
		if (!has_ip(want, other->ip[i]))
			other->ip[kept++] = other->ip[i];
	other->n = kept;
	other->uniq++;
	return update_server(w, other);
}

/* vldb.md §4.1, RegisterAddrs, rules 1 to 4. */
afs_err vl_server_register_in(
	struct vl_write *w, const uint8_t uuid[16], const uint32_t *ips, size_t n)
{
	static const uint8_t nil[16];
	if (memcmp(uuid, nil, sizeof(nil)) == 0)
		return AFS_EBADARG;
	struct vl_server want = {.registered = true};
	memcpy(want.uuid, uuid, sizeof(want.uuid));
	for (size_t i = 0; i < n && want.n < VL_ADDRS_MAX; i++)
		if (ip_ok(ips[i]) && !has_ip(&want, ips[i]))
			want.ip[want.n++] = ips[i];
	if (!want.n)
		return AFS_ERANGE;

	struct vl_server known, others[VL_ADDRS_MAX];
	uint32_t count;
	afs_err err = vl_server_by_uuid(w->db, uuid, &known);
	if (err && err != AFS_ENOENT)
		return err;
	bool is_known = !err;
	TRY(find_overlaps(w->db, &want, is_known ? known.slot : 0, others, &count));

	if (!is_known) {
		if (count > 1)
			return AFS_EVMULTIADDR;
		want.uniq = count ? others[0].uniq + 1 : 1;
		if (!count)
			return insert_server(w, &want);
		want.slot = others[0].slot; /* taken over: its volumes are ours */
		return update_server(w, &want);
	}

	for (uint32_t i = 0; i < count; i++)
		if (shared_ips(&others[i], &want) == others[i].n)
			return AFS_EVMULTIADDR;
	if (known.n == want.n && memcmp(known.ip, want.ip, want.n * sizeof(want.ip[0])) == 0)
		return AFS_OK;
	for (uint32_t i = 0; i < count; i++)
		TRY(give_up(w, &others[i], &want));
	want.slot = known.slot;
	want.uniq = known.uniq + 1;
	return update_server(w, &want);
}

/* ChangeAddr: a plain server moves; entries follow. */
afs_err vl_server_change_ip(struct vl_write *w, uint32_t from, uint32_t to)
{
	struct vl_server s, other;
	if (!ip_ok(to))
		return AFS_EVBADSERVER;
	TRY(vl_server_by_ip(w->db, from, &s));
	afs_err err = vl_server_by_ip(w->db, to, &other);
	if (err && err != AFS_ENOENT)
		return err;
	if (!err && other.slot != s.slot)
		return AFS_EVMULTIADDR;
	if (s.registered)
		return AFS_ENOENT; /* it registers its own addresses */
	s.n = 1;
	s.ip[0] = to;
	return update_server(w, &s);
}

afs_err vl_server_remove(struct vl_write *w, uint32_t ip)
{
	struct vl_server s;
	int64_t used;
	TRY(vl_server_by_ip(w->db, ip, &s));
	afs_err err = db_get_int(w->db, VS_SERVER_USED, &used, DB_INT(s.slot));
	if (err != AFS_ENOENT)
		return err ? err : AFS_EIDEXIST;
	TRY(db_run(w->db, VS_ADDRS_DELETE, DB_INT(s.slot)));
	return db_run(w->db, VS_SERVER_DELETE, DB_INT(s.slot));
}
