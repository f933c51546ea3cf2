/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Between the files of "afscell bench mount": bench_mount.c reads the options, says what it will do and drives,
 * bench_place.c knows the directories that are measured and how each forgets, bench_work.c and bench_tree.c are the
 * experiments, bench_sheet.c keeps what was measured and prints it, bench_html.c draws it. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/clk.h"
#include "cell/cli/bench.h"

#include <limits.h>
#include <signal.h>

enum { BM_PLACES = 8, BM_PIDS = 16, BM_RECORD = 8 << 10, BM_BLOCK = 256 << 10, BM_LIMIT = 400 };

/* SIGINT, SIGTERM or SIGHUP came: every loop looks, and the work ends as if it had failed. */
extern volatile sig_atomic_t bm_stopped;

/* A directory that is measured; everything is made in `work`, a new directory in it, and goes with it. */
struct bm_place {
	char label[64];
	char work[PATH_MAX]; /* "": not made */
	bool afs;            /* in the mount of this machine's afscell, which can forget by name */
	bool local;          /* the reference */
	pid_t pid[BM_PIDS];  /* who works for it beside us */
	size_t pids;
};

enum bm_unit { BM_MB, BM_FILE };

/* One measurement.  Runs of one thing have the same `what`, `cache` and place. */
struct bm_row {
	const char *what;  /* "write 8K" */
	const char *cache; /* "": as it is; "half", "twice": the size of the cache beside the file's */
	size_t place;
	enum bm_unit unit;
	double units; /* MB of 10^6 bytes, or files */
	double seconds;
	bool cut; /* its time was up: it has done as much as `units` says */
	struct bench_usage mine, theirs;
};

struct bm {
	struct cli *c;
	struct bm_place place[BM_PLACES];
	size_t places;
	/* the plan */
	bool quick;
	bool tune, untuned; /* the size of the cache is changed; would have been, were it ours to change */
	uint64_t stream, dd;
	unsigned files, sources, runs;
	mono_ns limit; /* of one measurement; it stops then, and counts what it has done */
	char compiler[16]; /* "": the tree is only unpacked */
	bool compiler_missing;
	const char *without; /* what is left out, as the user said; NULL: nothing */
	/* facts */
	json_t *status; /* the cell's */
	bool memory_cache;
	uint32_t cache_kib;
	double raw_small, raw_large, rx_fetch, rx_store; /* MB/s; 0: not measured */
	/* results */
	struct bm_row *row;
	size_t rows;
	unsigned step, steps; /* for the progress line */
};

/* --- bench_place.c ----------------------------------------------------------------------------------- */

/* Makes the work directory of a place in `dir`.  `afs`: it must be in our mount.  CLI_OK, or told. */
int bm_place_add(struct bm *b, const char *dir, const char *label, bool afs);
void bm_places_remove(struct bm *b);
/* Nothing of this file (or directory) is cached here any more, as far as the place can: AFS forgets it altogether,
 * any other place writes it back and drops the kernel's pages.  CLI_OK, or told. */
int bm_forget(struct bm *b, const struct bm_place *p, const char *path);
/* After the last bm_forget() before a measurement: the kernel is told afterwards, so give it a moment. */
void bm_forgotten(const struct bm_place *p);
/* The file's pages are on their medium, so that the next measurement does not pay for them. */
void bm_settle(const char *path);
/* Removes what is at `path` with all that is below; gives how many files that were, and -1 with errno. */
long bm_remove(const char *path, mono_ns until);
/* The cache of our client: its size and kind.  False: it does not say. */
bool bm_cache_facts(struct bm *b);
bool bm_cache_can_resize(struct bm *b); /* may we, and does this cache have a size to set? */
int bm_cache_resize(struct bm *b, uint32_t kib);

/* --- bench_work.c, bench_tree.c: each adds rows; CLI_OK, or CLI_FAILED (told, unless it was stopped) ---- */

/* From now to then: the clock, and what the processes used. */
struct bm_span {
	const struct bm_place *place;
	mono_ns start, until;
	struct bench_usage mine, theirs;
};
void bm_begin(struct bm *b, struct bm_span *s, size_t place, const char *doing);
/* Fills the times of `row`, which says the rest, and keeps it. */
void bm_end(struct bm *b, const struct bm_span *s, struct bm_row row);
static inline bool bm_time_is_up(const struct bm_span *s) { return clk_mono() >= s->until; }
int bm_fail(struct bm *b, const char *path, const char *doing); /* with errno */

int bm_stream(struct bm *b, size_t place, const char *cache);
int bm_dd(struct bm *b, size_t place, const char *cache);
int bm_small(struct bm *b, size_t place);
int bm_tree(struct bm *b, size_t place);
/* Content that no layer can shorten; the same bytes each time. */
const uint8_t *bm_content(void); /* BM_BLOCK bytes */

/* --- bench_sheet.c, bench_html.c ---------------------------------------------------------------------- */

struct bm_median {
	struct bm_row row; /* with medians */
	double least, most; /* of seconds per unit */
	size_t runs;
};
/* The next kind of measurement from row *at on, in the order in which the first of each came; false: no more. */
bool bm_next(const struct bm *b, size_t *at, struct bm_median *out);
/* As the tables and charts show it: "123 MB/s", "456/s". */
const char *bm_rate(char out[32], const struct bm_median *m);
double bm_rate_number(const struct bm_median *m);
/* One sentence: what keeps it from being faster, judged by what was measured beside it. */
void bm_limit(const struct bm *b, const struct bm_median *m, char out[BM_LIMIT]);
/* "write 8K, cache half the file" */
const char *bm_title(char out[96], const struct bm_row *r);
/* What a reader must know to read the figures right; one sentence each, at most `cap`. */
size_t bm_remarks(const struct bm *b, char (*out)[BM_LIMIT], size_t cap);
int bm_print(const struct bm *b);
/* The whole report as one page that loads nothing. */
void bm_html(const struct bm *b, struct buf *out);
