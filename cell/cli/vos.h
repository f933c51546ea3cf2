/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Between the files of vos. */
#pragma once
#include "cell/admin/volume.h"
#include "cell/cli/suite.h"

/* One command at work. */
struct vos {
	struct cli *c;
	struct admin *a;
	struct {
		long long free, total; /* KiB */
		unsigned partitions;
	} space; /* partinfo: sums */
};
/* Opens the cell; steps are told with -verbose, and an interrupt ends the command before its next one. */
int vos_begin(struct vos *v, struct cli *c);
void vos_cleanup(struct vos *v);

/* Arguments; what makes no sense is told and gives CLI_FAILED or CLI_USAGE.  One that was not given
 * leaves *ip 0, *part -1, and a number as it is. */
int vos_server(struct vos *v, const char *row, uint32_t *ip);
int vos_partition(struct vos *v, const char *row, int32_t *part);
int vos_number(struct vos *v, const char *row, int64_t min, int64_t max, int64_t *out);
int vos_id(struct vos *v, const char *row, uint32_t *out);
/* A date as dump times are given: "mm/dd/yyyy [hh:MM]", or "0". */
int vos_date(struct vos *v, const char *row, uint32_t *out);
/* The three that most commands begin with: CLI_OK only when all are. */
int vos_place(struct vos *v, uint32_t *ip, int32_t *part);

/* Entries gathered from the database: vldb_each(..., vos_keep, &entries). */
struct vos_entries {
	struct nvldbentry *v;
	size_t n, cap;
	const char *prefix; /* NULL, or only those whose names begin so */
};
afs_err vos_keep(void *entries, const struct nvldbentry *e);
static inline void vos_entries_cleanup(struct vos_entries *s) { mem_free(s->v); }

/* --- printing (vos_print.c) ------------------------------------------------------------------------- */

/* The ids and sites of an entry, then its lock; with the name's line before it when `name`. */
void vos_print_entry(struct vos *v, const struct nvldbentry *e, bool name);
json_t *vos_entry_json(struct vos *v, const struct nvldbentry *e);
/* A volume on its server, in one of the ways of listvol and examine. */
enum vos_form { VOS_SHORT, VOS_FAST, VOS_LONG, VOS_FORMAT, VOS_EXTENDED, VOS_EXTENDED_FORMAT };
void vos_print_volume(struct vos *v, const struct volintInfo *i, uint32_t ip, int32_t part, enum vos_form form);
void vos_print_xvolume(struct vos *v, const struct volintXInfo *x, uint32_t ip, int32_t part, enum vos_form form);
json_t *vos_volume_json(struct vos *v, const struct volintInfo *i, uint32_t ip, int32_t part);
json_t *vos_xvolume_json(struct vos *v, const struct volintXInfo *x, uint32_t ip, int32_t part);
const char *vos_volume_state(int32_t status, uint32_t in_use); /* "on-line", "off-line", "busy", "unattachable" */
/* "00159316-c04a-1b0d-bf-7f-0100007faa77"; `out` holds 48. */
const char *vos_uuid_text(char *out, const struct afsUUID *uuid);
bool vos_uuid_parse(const char *s, struct afsUUID *out);
