/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The directories that "afscell bench mount" measures: made, forgotten, removed.
 *
 * A cold read needs a file that nothing near has any more.  Our cache manager forgets a file when asked, with the
 * kernel's pages of it, as "afscell fs flush" does; that takes no privilege.  Of other file systems only the kernel's pages can be
 * dropped by an ordinary user, once they are written; what these cache besides, and names and attributes,
 * stays. */
#include "cell/cli/bench_mount.h"

#include "cell/proto/rmt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

DEFINE_CLEANUP_PTR(json, json_t, json_decref)

enum { DEPTH = 16 }; /* of what we make, and more */

/* "cell" and "fid" of a path in an AFS mount; NULL with errno. */
static json_t *name_of(const char *path)
{
	char cell[80] = "", fid[64] = "";
	ssize_t n = getxattr(path, "afs.cell", cell, sizeof(cell) - 1);
	n = n < 0 ? n : getxattr(path, "afs.fid", fid, sizeof(fid) - 1);
	return n < 0 ? NULL : json_pack("{s:s, s:s, s:b}", "cell", cell, "fid", fid, "volume", 0);
}

int bm_forget(struct bm *b, const struct bm_place *p, const char *path)
{
	if (p->afs) {
		CLEANUP(json) json_t *reply = NULL;
		json_t *name = name_of(path);
		return name ? cli_ask(b->c, "fs.flush", name, &reply) : bm_fail(b, path, "flush");
	}
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return bm_fail(b, path, "open");
	(void)fsync(fd); /* some refuse it for a directory; dirty pages then stay, and were reported by close */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return CLI_OK;
}

void bm_forgotten(const struct bm_place *p)
{
	if (p->afs)
		usleep(200000);
}

void bm_settle(const char *path)
{
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)fsync(fd); /* the measurement has had its answer */
}

/* --- removing ------------------------------------------------------------------------------------ */

static long remove_at(int dir, const char *name, mono_ns until, unsigned depth);

/* Gives `removed` and what it removes, or -1. */
static long remove_entries(DIR *d, int fd, mono_ns until, unsigned depth, long removed)
{
	for (struct dirent *e; removed >= 0 && clk_mono() < until && (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		long n = remove_at(fd, e->d_name, until, depth + 1);
		removed = n < 0 ? -1 : removed + n;
	}
	return removed;
}

static long remove_at(int dir, const char *name, mono_ns until, unsigned depth)
{
	if (unlinkat(dir, name, 0) == 0)
		return 1;
	if (errno == ENOENT)
		return 0;
	if ((errno != EISDIR && errno != EPERM) || depth == DEPTH)
		return -1;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		int e = errno;
		if (fd >= 0)
			close(fd);
		errno = e;
		return -1;
	}
	long removed = 0, before;
	bool gone;
	do { /* once more when something was passed over while the directory changed under its reader */
		before = removed;
		rewinddir(d);
		removed = remove_entries(d, fd, until, depth, removed);
		gone = removed >= 0 && unlinkat(dir, name, AT_REMOVEDIR) == 0;
	} while (!gone && removed > before && clk_mono() < until);
	int e = errno;
	closedir(d);
	errno = e;
	return gone || clk_mono() >= until ? removed : -1;
}

long bm_remove(const char *path, mono_ns until) { return remove_at(AT_FDCWD, path, until, 0); }

/* --- places --------------------------------------------------------------------------------------- */

int bm_place_add(struct bm *b, const char *dir, const char *label, bool afs)
{
	CLEANUP(json) json_t *reply = NULL;
	if (b->places == BM_PLACES)
		return cli_misuse(b->c, "at most %d directories can be compared", BM_PLACES);
	CLEANUP(heap) char *whole = realpath(dir, NULL);
	if (!whole)
		return cli_fail(b->c, "%s: %s", dir, strerror(errno));
	struct bm_place *p = &b->place[b->places];
	*p = (struct bm_place){.afs = afs};
	snprintf(p->label, sizeof(p->label), "%s", label);
	if (afs) {
		json_t *name = name_of(whole);
		if (!name)
			return cli_fail(b->c, "%s is not in AFS; name a directory in AFS where you may write, and others with -against", whole);
		if (cli_ask(b->c, "fs.flush", name, &reply) != CLI_OK)
			return cli_fail(b->c, "%s: this machine's afscell does not have it mounted; a mount by another can be measured with -against", whole);
	}
	if (snprintf(p->work, sizeof(p->work), "%s/afscell-bench.XXXXXX", strcmp(whole, "/") ? whole : "") >= (int)sizeof(p->work) - 64) {
		p->work[0] = 0;
		return cli_fail(b->c, "%s: the path is too long", whole);
	}
	if (!mkdtemp(p->work)) {
		p->work[0] = 0;
		return cli_fail(b->c, "%s: cannot make a directory there: %s%s", whole, strerror(errno),
			afs && errno == EACCES ? "; have you a token (afscell tokens), and is the ACL yours (afscell fs listacl)?" : "");
	}
	b->places++;
	return CLI_OK;
}

void bm_places_remove(struct bm *b)
{
	for (size_t i = 0; i < b->places; i++)
		if (b->place[i].work[0] && bm_remove(b->place[i].work, MONO_NEVER) < 0)
			cli_warn(b->c, "%s: not removed: %s", b->place[i].work, strerror(errno));
	b->places = 0;
}

/* --- our cache -------------------------------------------------------------------------------------- */

static bool ask_manager(struct bm *b, uint32_t cmd, const char *in, uint8_t *out, size_t want)
{
	CLEANUP(json) json_t *reply = NULL;
	if (cli_ask(b->c, "fs.pioctl", json_pack("{s:i, s:s}", "cmd", (int)cmd, "in", in), &reply) != CLI_OK)
		return false;
	int eno = (int)json_integer_value(json_object_get(reply, "errno"));
	const char *hex = json_string_value(json_object_get(reply, "out"));
	size_t n = hex ? strlen(hex) / 2 : 0;
	for (size_t i = 0; i < want && i < n; i++) {
		unsigned v = 0;
		sscanf(hex + 2 * i, "%2x", &v);
		out[i] = (uint8_t)v;
	}
	errno = eno;
	return !eno && n >= want;
}

bool bm_cache_facts(struct bm *b)
{
	uint8_t size[8], kind[36];
	uint32_t v;
	if (!ask_manager(b, PIOCTL_GETCACHEPARMS, "", size, sizeof(size)) || !ask_manager(b, PIOCTL_GETINITPARAMS, "", kind, sizeof(kind)))
		return false;
	b->cache_kib = be32_get(size);
	memcpy(&v, kind + 32, sizeof(v)); /* this call's numbers are the machine's */
	b->memory_cache = v == 2;
	return true;
}

static bool set_size(struct bm *b, uint32_t kib)
{
	char in[9];
	snprintf(in, sizeof(in), "%08x", kib);
	return ask_manager(b, PIOCTL_SETCACHESIZE, in, NULL, 0);
}

bool bm_cache_can_resize(struct bm *b) { return set_size(b, b->cache_kib); }

int bm_cache_resize(struct bm *b, uint32_t kib)
{
	return set_size(b, kib) ? CLI_OK : cli_fail(b->c, "cannot set the cache to %u KiB: %s", kib, strerror(errno));
}
