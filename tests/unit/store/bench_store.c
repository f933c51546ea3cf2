/* SPDX-License-Identifier: BSD-2-Clause
 * How fast the store's verbs are: bench_store [files] [process|power] [folder] [MiB].  Prints one
 * line per verb. */
#include "cell/base/log.h"
#include "fileserver/store/store.h"

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct vs_who who = {.id = 1000};
static const struct vs_fid root = {1, 1};

static void must(afs_err err, const char *what)
{
	if (err) {
		fprintf(stderr, "bench_store: %s: %s\n", what, afs_err_text(err));
		exit(1);
	}
}

static double cpu_before;

static double cpu_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static mono_ns start(void)
{
	cpu_before = cpu_us();
	return clk_mono();
}

static void report(const char *what, long n, mono_ns since)
{
	double s = (double)(clk_mono() - since) / 1e9;
	printf("%-34s %8ld  %9.0f /s  %7.2f us, %7.2f us of CPU\n", what, n, (double)n / s,
		s / (double)n * 1e6, (cpu_us() - cpu_before) / (double)n);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void *keeper(void *s)
{
	vs_store_keep(s);
	return NULL;
}

static struct vs_fid store_file(
	struct vs_volume *v, struct vs_fid dir, const char *name, const void *data, size_t n)
{
	struct vs_made made;
	struct vs_status st;
	struct vs_writer *w;
	who.now = clk_wall();
	must(vs_create_file(v, dir, name, &who, NULL, &made), "create");
	const struct vs_write req = {.pos = 0, .length = n, .file_length = n};
	must(vs_write_begin(v, made.node.fid, &req, &who, &w), "begin");
	must(vs_write_put(w, data, n), "put");
	must(vs_write_end(w, &who, &st), "end");
	return made.node.fid;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 50000;
	bool power = argc > 2 && strcmp(argv[2], "power") == 0;
	char folder[256] = "/tmp/bench-store-XXXXXX";
	if (argc > 3)
		snprintf(folder, sizeof(folder), "%s/bench-store-XXXXXX", argv[3]);
	if (!mkdtemp(folder))
		return 1;
	struct vs_config config = {.durability = power ? VS_POWER : VS_PROCESS};
	struct vs_store *s;
	struct vs_partition *p;
	struct vs_volume *v;
	log_to(2, LOG_WARN);
	must(vs_store_open(&config, &s), "open");
	must(vs_partition_attach(s, "a", folder, &p), "attach");
	struct vs_header h = {.id = 536870912, .name = "bench", .in_service = true};
	must(vs_volume_create(p, &h, true, clk_wall(), &v), "volume");
	h.quota_kib = 0;
	must(vs_volume_set_header(v, &h, VS_H_DESTROY_ME | VS_H_IN_SERVICE | VS_H_QUOTA), "header");
	pthread_t t;
	pthread_create(&t, NULL, keeper, s);

	static char data[2048], big[1 << 20];
	memset(data, 'x', sizeof(data));
	memset(big, 'y', sizeof(big));
	struct vs_fid *fids = mem_new_array((size_t)n, struct vs_fid), dir = root;
	struct vs_made made;
	struct vs_node node;
	struct vs_fid found;
	struct vs_removed removed;
	struct vs_status st;
	char name[32];

	mono_ns at = start(), worst = 0;
	for (long i = 0; i < n; i++) {
		if (i % 100 == 0) {
			snprintf(name, sizeof(name), "d%ld", i / 100);
			who.now = clk_wall();
			must(vs_make_dir(v, root, name, &who, NULL, &made), "mkdir");
			dir = made.node.fid;
		}
		snprintf(name, sizeof(name), "file%ld.c", i % 100);
		mono_ns one = clk_mono();
		fids[i] = store_file(v, dir, name, data, sizeof(data));
		one = clk_mono() - one;
		worst = one > worst ? one : worst;
	}
	report("create + store 2 KiB", n, at);
	printf("%-34s %8.2f ms\n", "  longest of them", (double)worst / 1e6);

	at = start();
	for (long i = 0; i < n; i++)
		must(vs_node_get(v, fids[i], &node), "node");
	report("status, warm", n, at);
	at = start();
	for (long i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "file%ld.c", i % 100);
		must(vs_lookup(v, dir, name, &found), "lookup");
	}
	report("lookup, warm", n, at);
	at = start();
	for (long i = 0; i < n; i++) {
		struct vs_file *f;
		size_t got;
		must(vs_file_open(v, fids[i], &st, &f), "open");
		must(vs_file_read(f, 0, big, sizeof(data), &got), "read");
		vs_file_close(f);
	}
	report("open + read 2 KiB", n, at);
	at = start();
	for (long i = 0; i < n; i++) {
		struct vs_set set = {.mask = VS_SET_MODE, .mode = 0644};
		must(vs_set_status(v, fids[i], &set, &who, &st), "chmod");
	}
	report("chmod", n, at);

	long mib = argc > 4 ? atol(argv[4]) : 512;
	struct vs_fid large = store_file(v, root, "large", data, sizeof(data));
	at = start();
	for (long i = 0; i < mib; i++) {
		struct vs_writer *w;
		const struct vs_write req = {
			(uint64_t)i << 20, sizeof(big), (uint64_t)mib << 20, NULL, false};
		must(vs_write_begin(v, large, &req, &who, &w), "begin");
		for (size_t o = 0; o < sizeof(big); o += 1408)
			must(vs_write_put(w, big + o, MIN((size_t)1408, sizeof(big) - o)), "put");
		must(vs_write_end(w, &who, &st), "end");
	}
	report("store 1 MiB in runs of 1408", mib, at);
	at = start();
	for (long i = 0; i < mib; i++) {
		struct vs_writer *w;
		const struct vs_write req = {
			(uint64_t)i << 20, sizeof(big), (uint64_t)mib << 20, NULL, false};
		must(vs_write_begin(v, large, &req, &who, &w), "begin");
		must(vs_write_put(w, big, sizeof(big)), "put");
		must(vs_write_end(w, &who, &st), "end");
	}
	report("overwrite 1 MiB in place", mib, at);
	at = start();
	struct vs_file *f;
	must(vs_file_open(v, large, &st, &f), "open");
	for (uint64_t pos = 0; pos < (uint64_t)mib << 20; pos += 1408) {
		size_t got;
		must(vs_file_read(f, pos, big, 1408, &got), "read");
	}
	vs_file_close(f);
	report("read MiB in runs of 1408", mib, at);

	at = start();
	for (long i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "d%ld", i / 100);
		if (i % 100 == 0)
			must(vs_lookup(v, root, name, &dir), "lookup");
		snprintf(name, sizeof(name), "file%ld.c", i % 100);
		must(vs_remove(v, dir, name, &who, &removed), "remove");
	}
	report("remove", n, at);

	vs_volume_unref(v);
	vs_store_stop(s);
	pthread_join(t, NULL);
	vs_store_close(s);
	mem_free(fids);
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
