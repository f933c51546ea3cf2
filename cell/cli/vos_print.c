/* SPDX-License-Identifier: BSD-2-Clause
 *
 * vos: entries and volumes as text and as JSON.  The text is what stock vos prints, byte for byte: scripts
 * read these columns.  tests/interop/70-suites.sh compares. */
#include "cell/cli/vos.h"

#include "cell/base/text.h"

#include <stdio.h>
#include <string.h>

static const char *const type_names[] = {[AFS_VOL_RW] = "RW", [AFS_VOL_RO] = "RO", [AFS_VOL_BK] = "BK"};

static const char *type_name(int32_t type) { return type >= AFS_VOL_RW && type <= AFS_VOL_BK ? type_names[type] : "??"; }

/* --- entries ----------------------------------------------------------------------------------------- */

static const struct {
	int32_t flag;
	const char *word, *text;
} operations[] = {
	{VLF_OP_MOVE, "move", "move"},
	{VLF_OP_RELEASE, "release", "release"},
	{VLF_OP_BACKUP, "backup", "backup"},
	{VLF_OP_DELETE, "delete", "delete/misc"},
	{VLF_OP_DUMP, "dump", "dump/restore"},
};

static bool mixed(const struct nvldbentry *e)
{
	for (int i = 0; i < e->nServers; i++)
		if (e->serverFlags[i] & VLSF_NEWREPSITE)
			return true;
	return false;
}

static void print_site(struct vos *v, const struct nvldbentry *e, int i)
{
	int32_t flags = e->serverFlags[i];
	printf("       server %s partition %s ", admin_host_name(v->a, e->serverNumber[i]), PARTNAME(e->serverPartition[i]));
	printf("%s", flags & VLSF_RW ? "RW Site " : flags & VLSF_RO ? "RO Site " : "");
	if (mixed(e))
		printf(flags & VLSF_NEWREPSITE ? " -- New release" : " -- Old release");
	else if (flags & VLSF_DONTUSE)
		printf(" -- Not released");
	printf("\n");
}

void vos_print_entry(struct vos *v, const struct nvldbentry *e, bool name)
{
	if (name)
		printf("\n%s \n", e->name);
	if (e->flags & VLF_RW_EXISTS)
		printf("    RWrite: %-10u", e->volumeId[AFS_VOL_RW]);
	if (e->flags & VLF_RO_EXISTS)
		printf("    ROnly: %-10u", e->volumeId[AFS_VOL_RO]);
	if (e->flags & VLF_BK_EXISTS)
		printf("    Backup: %-10u", e->volumeId[AFS_VOL_BK]);
	if (e->cloneId && (e->flags & VLF_RO_EXISTS))
		printf("    RClone: %-10u", e->cloneId);
	printf("\n    number of sites -> %d\n", e->nServers);
	for (int i = 0; i < e->nServers; i++)
		print_site(v, e, i);
	if (!(e->flags & VLF_OP_MASK))
		return;
	printf("    Volume is currently LOCKED  \n");
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		if (e->flags & operations[i].flag)
			printf("    Volume is locked for a %s operation\n", operations[i].text);
}

json_t *vos_entry_json(struct vos *v, const struct nvldbentry *e)
{
	json_t *sites = json_array(), *o = json_pack("{s:s}", "name", e->name);
	static const struct {
		int32_t flag;
		const char *key;
	} kinds[] = {{VLF_RW_EXISTS, "rw_id"}, {VLF_RO_EXISTS, "ro_id"}, {VLF_BK_EXISTS, "backup_id"}};
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		json_object_set_new(o, kinds[i].key, e->flags & kinds[i].flag ? json_integer(e->volumeId[i]) : json_null());
	if (e->cloneId)
		json_object_set_new(o, "clone_id", json_integer(e->cloneId));
	for (int i = 0; i < e->nServers; i++) {
		int32_t flags = e->serverFlags[i];
		json_array_append_new(sites, json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "server", admin_host_name(v->a, e->serverNumber[i]),
			"address", IPV4(e->serverNumber[i]), "partition", PARTNAME(e->serverPartition[i]), "type",
			flags & VLSF_RW ? "RW" : flags & VLSF_RO ? "RO" : "", "released", !(flags & VLSF_DONTUSE), "new_release",
			(flags & VLSF_NEWREPSITE) != 0));
	}
	json_object_set_new(o, "sites", sites);
	json_t *locked = json_null();
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		if (e->flags & operations[i].flag)
			locked = json_string(operations[i].word);
	json_object_set_new(o, "locked_for", locked);
	return o;
}

/* --- volumes ---------------------------------------------------------------------------------------------- */

/* What both kinds of listing tell. */
struct volume {
	const char *name;
	uint32_t id;
	int32_t type, status;
	uint32_t backup, parent, clone, in_use, salvage;
	uint32_t created, accessed, updated, backed_up, copied;
	int32_t uses, files, quota, size;
};

static struct volume of_info(const struct volintInfo *i)
{
	return (struct volume){i->name, i->volid, i->type, i->status, i->backupID, i->parentID, i->cloneID, i->inUse, i->needsSalvaged,
		i->creationDate, i->accessDate, i->updateDate, i->backupDate, i->copyDate, i->dayUse, i->filecount, i->maxquota, i->size};
}

static struct volume of_xinfo(const struct volintXInfo *x)
{
	return (struct volume){x->name, x->volid, x->type, x->status, x->backupID, x->parentID, x->cloneID, x->inUse, 0,
		x->creationDate, x->accessDate, x->updateDate, x->backupDate, x->copyDate, x->dayUse, x->filecount, x->maxquota, x->size};
}

const char *vos_volume_state(int32_t status, uint32_t in_use)
{
	return status == VOL_STATUS_BUSY ? "busy" : status != VOL_STATUS_OK ? "unattachable" : in_use == 1 ? "on-line" : "off-line";
}

static void print_state(const struct volume *w)
{
	printf("%s", w->in_use == 1 ? "On-line" : "Off-line");
	if (w->salvage == 1)
		printf("**needs salvage**");
	printf("\n");
}

static void print_line(const struct volume *w, enum vos_form form)
{
	printf("%-32s %10u %s ", w->name, w->id, type_name(w->type));
	if (form == VOS_SHORT)
		printf("%10d K ", w->size);
	else if (form == VOS_LONG)
		printf("%10d K  ", w->size);
	else
		printf("%10d K used %d files ", w->size, w->files);
	print_state(w);
}

static void print_more(struct vos *v, const struct volume *w, uint32_t ip, int32_t part)
{
	printf("    %s %s \n", admin_host_name(v->a, ip), PARTNAME(part));
	printf("    RWrite %10u ROnly %10u Backup %10u \n", w->parent, w->clone, w->backup);
	printf("    MaxQuota %10d K \n", w->quota);
	printf("    Creation    %s\n", CTIME(w->created));
	printf("    Copy        %s\n", CTIME(w->copied));
	printf("    Backup      %s\n", w->backed_up ? CTIME(w->backed_up) : "Never");
	if (w->accessed)
		printf("    Last Access %s\n", CTIME(w->accessed));
	printf("    Last Update %s\n", w->updated ? CTIME(w->updated) : "Never");
	printf("    %d accesses in the past day (i.e., vnode references)\n", w->uses);
}

/* Of a volume that could not be looked at.  False: it could. */
static bool print_absent(struct vos *v, const struct volume *w, uint32_t ip, int32_t part, enum vos_form form)
{
	bool busy = w->status == VOL_STATUS_BUSY;
	if (w->status == VOL_STATUS_OK)
		return false;
	if (form == VOS_FORMAT)
		printf("name\t\t%s\nid\t\t%u\nserv\t\t%s\t%s\npart\t\t%s\nstatus\t\t%s\n", w->name, w->id, IPV4(ip), admin_host_name(v->a, ip),
			PARTNAME(part), busy ? "BUSY" : "UNATTACHABLE");
	else if (form == VOS_EXTENDED_FORMAT)
		printf("%s\t%u\n", busy ? "BUSY_VOL" : "COULD_NOT_ATTACH", w->id);
	else
		printf(busy ? "**** Volume %u is busy ****\n" : "**** Could not attach volume %u ****\n", w->id);
	return true;
}

static void format_head(struct vos *v, const struct volume *w, uint32_t ip, int32_t part)
{
	printf("name\t\t%s\nid\t\t%u\nserv\t\t%s\t%s\npart\t\t%s\nstatus\t\tOK\n", w->name, w->id, IPV4(ip), admin_host_name(v->a, ip),
		PARTNAME(part));
	printf("backupID\t%u\nparentID\t%u\ncloneID\t\t%u\ninUse\t\t%s\n", w->backup, w->parent, w->clone, w->in_use == 1 ? "Y" : "N");
}

static void format_dates(const struct volume *w)
{
	const struct {
		const char *name;
		uint32_t date;
	} dates[] = {{"creationDate", w->created}, {"accessDate", w->accessed}, {"updateDate", w->updated}, {"backupDate", w->backed_up},
		{"copyDate", w->copied}};
	printf("type\t\t%s\n", type_name(w->type));
	for (size_t i = 0; i < ARRAY_SIZE(dates); i++)
		printf("%s\t%-9u\t%s\n", dates[i].name, dates[i].date, CTIME(dates[i].date));
}

void vos_print_volume(struct vos *v, const struct volintInfo *i, uint32_t ip, int32_t part, enum vos_form form)
{
	struct volume w = of_info(i);
	if (form == VOS_FAST) {
		printf("%-10u\n", w.id);
		return;
	}
	if (print_absent(v, &w, ip, part, form))
		return;
	if (form != VOS_FORMAT) {
		print_line(&w, form);
		if (form == VOS_LONG)
			print_more(v, &w, ip, part);
		return;
	}
	format_head(v, &w, ip, part);
	printf("needsSalvaged\t%s\ndestroyMe\t%s\n", i->needsSalvaged == 1 ? "Y" : "N", i->destroyMe ? "Y" : "N");
	format_dates(&w);
	printf("flags\t\t%#x\t(Optional)\ndiskused\t%u\nmaxquota\t%u\nminquota\t%u\t(Optional)\nfilecount\t%u\n", (unsigned)i->flags,
		(unsigned)i->size, (unsigned)i->maxquota, (unsigned)i->spare0, (unsigned)i->filecount);
	printf("dayUse\t\t%u\nweekUse\t\t%u\t(Optional)\nspare2\t\t%u\t(Optional)\nspare3\t\t%u\t(Optional)\n", (unsigned)i->dayUse,
		(unsigned)i->spare1, (unsigned)i->spare2, (unsigned)i->spare3);
}

/* --- statistics ------------------------------------------------------------------------------------------ */

static const char *const ages[] = {"0-60 sec ", "1-10 min ", "10min-1hr", "1hr-1day ", "1day-1wk ", "> 1wk    "};
enum { AGES_FORMAT = 5 }; /* stock leaves the last one out of its format for programs */

static void print_statistics(const struct volintXInfo *x)
{
	static const char bar[] = "          |-------------------------------------------|\n",
			  bars[] = "          |----------|----------|----------|----------|\n";
	printf("\n                      Raw Read/Write Stats\n%s", bar);
	printf("          |    Same Network     |    Diff Network     |\n%s", bars);
	printf("          |  Total   |   Auth   |   Total  |   Auth   |\n%s", bars);
	printf("Reads     | %8d | %8d | %8d | %8d |\n", x->stat_reads[0], x->stat_reads[1], x->stat_reads[2], x->stat_reads[3]);
	printf("Writes    | %8d | %8d | %8d | %8d |\n%s\n", x->stat_writes[0], x->stat_writes[1], x->stat_writes[2], x->stat_writes[3], bar);
	printf("                   Writes Affecting Authorship\n%s", bar);
	printf("          |   File Authorship   | Directory Authorship|\n%s", bars);
	printf("          |   Same   |   Diff   |    Same  |   Diff   |\n%s", bars);
	for (size_t i = 0; i < ARRAY_SIZE(ages); i++)
		printf("%s | %8d | %8d | %8d | %8d |\n", ages[i], x->stat_fileSameAuthor[i], x->stat_fileDiffAuthor[i], x->stat_dirSameAuthor[i],
			x->stat_dirDiffAuthor[i]);
	printf("%s", bar);
}

void vos_print_xvolume(struct vos *v, const struct volintXInfo *x, uint32_t ip, int32_t part, enum vos_form form)
{
	static const char *const nets[] = {"same_net", "same_net_auth", "diff_net", "diff_net_auth"};
	struct volume w = of_xinfo(x);
	if (print_absent(v, &w, ip, part, form))
		return;
	if (form != VOS_EXTENDED_FORMAT) {
		print_line(&w, form);
		print_more(v, &w, ip, part);
		print_statistics(x);
		return;
	}
	format_head(v, &w, ip, part);
	format_dates(&w);
	printf("diskused\t%u\nmaxquota\t%u\nfilecount\t%u\ndayUse\t\t%u\n", (unsigned)x->size, (unsigned)x->maxquota,
		(unsigned)x->filecount, (unsigned)x->dayUse);
	for (size_t i = 0; i < ARRAY_SIZE(nets); i++)
		printf("reads_%s\t%8d\n", nets[i], x->stat_reads[i]);
	for (size_t i = 0; i < ARRAY_SIZE(nets); i++)
		printf("writes_%s\t%8d\n", nets[i], x->stat_writes[i]);
	for (int i = 0; i < AGES_FORMAT; i++) {
		printf("file_same_author_idx_%d\t%8d\n", i + 1, x->stat_fileSameAuthor[i]);
		printf("file_diff_author_idx_%d\t%8d\n", i + 1, x->stat_fileDiffAuthor[i]);
		printf("dir_same_author_idx_%d\t%8d\n", i + 1, x->stat_dirSameAuthor[i]);
		printf("dir_dif_author_idx_%d\t%8d\n", i + 1, x->stat_dirDiffAuthor[i]);
	}
}

/* --- JSON -------------------------------------------------------------------------------------------------- */

static json_t *volume_json(struct vos *v, const struct volume *w, uint32_t ip, int32_t part)
{
	json_t *o = json_pack("{s:s, s:I, s:s, s:s, s:s, s:s}", "name", w->name, "id", (json_int_t)w->id, "server", admin_host_name(v->a, ip),
		"address", IPV4(ip), "partition", PARTNAME(part), "state", vos_volume_state(w->status, w->in_use));
	if (w->status != VOL_STATUS_OK)
		return o;
	const struct {
		const char *key;
		int64_t n;
	} fields[] = {{"rw_id", w->parent}, {"ro_id", w->clone}, {"backup_id", w->backup}, {"size_kib", w->size}, {"max_quota_kib", w->quota},
		{"files", w->files}, {"created", w->created}, {"copied", w->copied}, {"backed_up", w->backed_up}, {"accessed", w->accessed},
		{"updated", w->updated}, {"day_use", w->uses}};
	json_object_set_new(o, "type", json_string(type_name(w->type)));
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		json_object_set_new(o, fields[i].key, json_integer(fields[i].n));
	return o;
}

json_t *vos_volume_json(struct vos *v, const struct volintInfo *i, uint32_t ip, int32_t part)
{
	struct volume w = of_info(i);
	json_t *o = volume_json(v, &w, ip, part);
	json_object_set_new(o, "needs_salvage", json_boolean(i->needsSalvaged == 1));
	return o;
}

static json_t *numbers(const int32_t *v, size_t n)
{
	json_t *a = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_integer(v[i]));
	return a;
}

json_t *vos_xvolume_json(struct vos *v, const struct volintXInfo *x, uint32_t ip, int32_t part)
{
	struct volume w = of_xinfo(x);
	json_t *o = volume_json(v, &w, ip, part);
	if (w.status != VOL_STATUS_OK)
		return o;
	json_object_set_new(o, "reads", numbers(x->stat_reads, ARRAY_SIZE(x->stat_reads)));
	json_object_set_new(o, "writes", numbers(x->stat_writes, ARRAY_SIZE(x->stat_writes)));
	json_object_set_new(o, "file_same_author", numbers(x->stat_fileSameAuthor, ARRAY_SIZE(ages)));
	json_object_set_new(o, "file_diff_author", numbers(x->stat_fileDiffAuthor, ARRAY_SIZE(ages)));
	json_object_set_new(o, "dir_same_author", numbers(x->stat_dirSameAuthor, ARRAY_SIZE(ages)));
	json_object_set_new(o, "dir_diff_author", numbers(x->stat_dirDiffAuthor, ARRAY_SIZE(ages)));
	return o;
}

/* --- UUIDs -------------------------------------------------------------------------------------------------- */

const char *vos_uuid_text(char *out, const struct afsUUID *u)
{
	snprintf(out, 48, "%08x-%04x-%04x-%02x-%02x-%02x%02x%02x%02x%02x%02x", u->time_low, u->time_mid & 0xffff, u->time_hi_and_version & 0xffff,
		u->clock_seq_hi_and_reserved & 0xff, u->clock_seq_low & 0xff, u->node[0] & 0xff, u->node[1] & 0xff, u->node[2] & 0xff,
		u->node[3] & 0xff, u->node[4] & 0xff, u->node[5] & 0xff);
	return out;
}

bool vos_uuid_parse(const char *s, struct afsUUID *out)
{
	unsigned f[11];
	int end = 0;
	if (sscanf(s, "%8x-%4x-%4x-%2x-%2x-%2x%2x%2x%2x%2x%2x%n", &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], &f[6], &f[7], &f[8], &f[9], &f[10],
		    &end) != 11
		|| s[end])
		return false;
	*out = (struct afsUUID){.time_low = f[0], .time_mid = f[1], .time_hi_and_version = f[2],
		.clock_seq_hi_and_reserved = (int8_t)f[3], .clock_seq_low = (int8_t)f[4]};
	for (int i = 0; i < 6; i++)
		out->node[i] = (int8_t)f[5 + i];
	return true;
}
