/* SPDX-License-Identifier: BSD-2-Clause
 * vol_fill FOLDER ID NAME FILES BYTES [VOLUMES]: a partition in FOLDER with one volume, or several of
 * consecutive ids, of so many files, 1,000 in a directory; for tests/bench/vol, which has no time to make 200,000 files by way of a client. */
#include "fileserver/store/store.h"

#include "cell/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct vs_who who = {.now = SEC(1000000000), .id = 1};
static uint8_t data[1 << 20];

static afs_err fill_file(struct vs_volume *v, struct vs_fid f, uint64_t bytes)
{
	struct vs_writer *w;
	struct vs_status st;
	const struct vs_write req = {.length = bytes, .file_length = bytes};
	if (!bytes)
		return AFS_OK;
	TRY(vs_write_begin(v, f, &req, &who, &w));
	for (uint64_t at = 0; at < bytes; at += sizeof(data))
		(void)vs_write_put(w, data, (size_t)MIN(bytes - at, (uint64_t)sizeof(data))); /* _end tells */
	return vs_write_end(w, &who, &st);
}

static afs_err fill(struct vs_volume *v, unsigned long files, uint64_t bytes)
{
	struct vs_made m, d = {.node.fid = {1, 1}};
	char name[32];
	for (unsigned long i = 0; i < files; i++) {
		if (i % 1000 == 0) {
			snprintf(name, sizeof(name), "d%lu", i / 1000);
			TRY(vs_make_dir(v, (struct vs_fid){1, 1}, name, &who, NULL, &d));
		}
		snprintf(name, sizeof(name), "f%lu", i);
		TRY(vs_create_file(v, d.node.fid, name, &who, NULL, &m));
		TRY(fill_file(v, m.node.fid, bytes));
	}
	return AFS_OK;
}

static afs_err make(struct vs_partition *p, const struct vs_header *h, unsigned long files, uint64_t bytes)
{
	struct vs_volume *v;
	TRY(vs_volume_create(p, h, true, who.now, &v));
	afs_err err = vs_volume_set_header(v, h, VS_H_DESTROY_ME | VS_H_IN_SERVICE | VS_H_QUOTA);
	if (!err)
		err = fill(v, files, bytes);
	vs_volume_unref(v);
	return err;
}

int main(int argc, char **argv)
{
	if (argc != 6 && argc != 7)
		return 2;
	struct vs_config config = {0};
	struct vs_store *s;
	struct vs_partition *p;
	struct vs_header h = {.id = (afs_volid)strtoul(argv[2], NULL, 10), .in_service = true};
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 2654435761u >> 13);
	log_to(2, LOG_ERROR);
	afs_err err = vs_store_open(&config, &s);
	if (!err)
		err = vs_partition_attach(s, "a", argv[1], &p);
	unsigned long volumes = argc == 7 ? strtoul(argv[6], NULL, 10) : 1;
	for (unsigned long i = 0; i < volumes && !err; i++, h.id++) {
		if (i)
			snprintf(h.name, sizeof(h.name), "%.20s%u", argv[3], (unsigned)i % 1000000000);
		else
			snprintf(h.name, sizeof(h.name), "%.20s", argv[3]);
		err = make(p, &h, strtoul(argv[4], NULL, 10), strtoull(argv[5], NULL, 10));
	}
	if (err) {
		fprintf(stderr, "vol_fill: %s\n", afs_err_text(err));
		return 1;
	}
	vs_store_close(s);
	return 0;
}
