/* SPDX-License-Identifier: BSD-2-Clause
 * Which entries a list shows. */
#include "dbserver/vl/vl_store.h"

afs_err vl_filter_init(
	struct db *db, const struct VldbListByAttributes *attr, struct vl_filter *out)
{
	*out = (struct vl_filter){
		.mask = attr->Mask, .partition = attr->partition, .flag = attr->flag};
	if (attr->Mask & VLLIST_SERVER) {
		struct vl_server server;
		TRY(vl_server_by_ip(db, attr->server, &server));
		out->slot = server.slot;
	}
	return AFS_OK;
}

/* With a server its first site is the one whose partition counts; without, any site's. */
static bool match_sites(const struct vl_filter *f, const struct vl_row *row)
{
	for (unsigned i = 0; i < row->sites; i++) {
		bool part = !(f->mask & VLLIST_PARTITION) || row->site[i].partition == f->partition;
		if (f->mask & VLLIST_SERVER) {
			if (row->site[i].slot == f->slot)
				return part;
		} else if (part) {
			return true;
		}
	}
	return false;
}

static bool match_flag(const struct vl_filter *f, const struct vl_row *row)
{
	return !(f->mask & VLLIST_FLAG) || (row->flags & f->flag) != 0;
}

bool vl_filter_match(const struct vl_filter *f, const struct vl_row *row)
{
	if (!match_flag(f, row))
		return false;
	return !(f->mask & (VLLIST_SERVER | VLLIST_PARTITION)) || match_sites(f, row);
}

static bool match_name(
	const struct vl_pattern *pattern, const struct vl_row *row, const char *suffix)
{
	if (!pattern)
		return true;
	char name[VL_NAME_MAX + 16];
	size_t len = strlen(row->name), more = strlen(suffix);
	memcpy(name, row->name, len);
	memcpy(name + len, suffix, more);
	return vl_pattern_match(pattern, name, len + more);
}

/* The first site whose RW or BK volume matches; else the first whose RO does. */
int32_t vl_filter_match_n2(
	const struct vl_filter *f, const struct vl_pattern *pattern, const struct vl_row *row)
{
	int32_t read_only = -1;
	if (!match_flag(f, row))
		return -1;
	for (unsigned i = 0; i < row->sites; i++) {
		const struct vl_site *s = &row->site[i];
		if ((f->mask & VLLIST_SERVER) && s->slot != f->slot)
			continue;
		if ((f->mask & VLLIST_PARTITION) && s->partition != f->partition)
			continue;
		if ((s->flags & VLSF_RW) && (row->flags & VLF_RW_EXISTS)) {
			if (match_name(pattern, row, ""))
				return VLSF_RW << 16 | (int32_t)i;
			if ((row->flags & VLF_BK_EXISTS) && match_name(pattern, row, ".backup"))
				return VLSF_BK << 16 | (int32_t)i;
		} else if ((s->flags & VLSF_RO) && read_only < 0 &&
			   match_name(pattern, row, ".readonly")) {
			read_only = VLSF_RO << 16 | (int32_t)i;
		}
	}
	return read_only;
}
