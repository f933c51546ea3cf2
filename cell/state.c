/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The state directory (state.h).  The lock is a file that stays: removing a lock file that another
 * process is about to lock would let two in. */
#include "cell/state.h"

#include "cell/base/log.h"
#include "cell/base/rand.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct state {
	char *dir;
	char *cell;
	int lock_fd;
	bool fresh, kept, dir_made;
};

static afs_err say(struct buf *why, const char *path, const char *what)
{
	int eno = errno;
	buf_printf(why, "%s: %s: %s", path, what, strerror(eno));
	if (eno == EACCES || eno == EPERM)
		buf_puts(why, geteuid() ? "; run this as root, or choose directories of your own" : "");
	if (eno == ENOSPC)
		buf_puts(why, "; make room on that disk");
	if (eno == EROFS)
		buf_puts(why, "; make that file system writable, or choose another directory in the configuration");
	if (eno == EEXIST || eno == ENOTDIR || eno == ENAMETOOLONG || eno == ENOENT)
		buf_puts(why, "; choose another directory in the configuration");
	return afs_err_from_errno(eno);
}

static char *path_in(const struct state *s, const char *name) { return mem_printf("%s/%s", s->dir, name); }

/* A small file as text; NULL when it cannot be read. */
static char *slurp(const char *path)
{
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	CLEANUP(buf) struct buf b = {};
	char some[1024];
	ssize_t k;
	if (fd < 0)
		return NULL;
	while ((k = read(fd, some, sizeof(some))) > 0 && b.len < 1 << 20)
		buf_put(&b, some, (size_t)k);
	if (k < 0 || b.err)
		return NULL;
	buf_putc(&b, '\0');
	return buf_take(&b);
}

/* Replaces a file in one step. */
static afs_err spit(const char *path, const char *text, mode_t mode, struct buf *why)
{
	CLEANUP(str) char *tmp = mem_printf("%s.new", path);
	if (!tmp)
		return AFS_ENOMEM;
	CLEANUP(fd) int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	size_t n = strlen(text);
	ssize_t k = fd < 0 ? -1 : write(fd, text, n);
	if (k != (ssize_t)n && k >= 0)
		errno = ENOSPC;
	if (k != (ssize_t)n || fsync(fd) != 0 || rename(tmp, path) != 0) {
		afs_err err = say(why, path, "cannot be written");
		unlink(tmp);
		return err;
	}
	return AFS_OK;
}

/* --- removing ------------------------------------------------------------------------------ */

/* `keep`: a name in this directory that stays, or NULL.  Takes fd. */
static afs_err remove_inside(int fd, dev_t dev, const char *path, const char *keep, struct buf *why)
{
	DIR *d = fdopendir(fd);
	if (!d) {
		close(fd);
		return say(why, path, "cannot be read");
	}
	afs_err err = AFS_OK;
	struct dirent *e;
	while (err == AFS_OK && (errno = 0, e = readdir(d))) {
		struct stat st;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0
			|| (keep && strcmp(e->d_name, keep) == 0))
			continue;
		CLEANUP(str) char *full = mem_printf("%s/%s", path, e->d_name);
		if (!full)
			err = AFS_ENOMEM;
		else if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			err = errno == ENOENT ? AFS_OK : say(why, full, "cannot be looked at");
		else if (st.st_dev != dev) {
			buf_printf(why, "%s: something is mounted there; unmount it first", full);
			err = AFS_EBUSY;
		} else if (S_ISDIR(st.st_mode)) {
			int sub = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			err = sub < 0 ? say(why, full, "cannot be opened") : remove_inside(sub, dev, full, NULL, why);
			if (err == AFS_OK && unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) != 0 && errno != ENOENT)
				err = say(why, full, "cannot be removed");
		} else if (unlinkat(dirfd(d), e->d_name, 0) != 0 && errno != ENOENT) {
			err = say(why, full, "cannot be removed");
		}
	}
	closedir(d);
	return err;
}

static afs_err remove_content(const char *path, const char *keep, struct buf *why)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return errno == ENOENT ? AFS_OK : say(why, path, "cannot be opened");
	if (fstat(fd, &st) != 0) {
		close(fd);
		return say(why, path, "cannot be looked at");
	}
	return remove_inside(fd, st.st_dev, path, keep, why);
}

afs_err state_remove_tree(const char *path, struct buf *why)
{
	TRY(remove_content(path, NULL, why));
	if (rmdir(path) != 0 && errno != ENOENT)
		return say(why, path, "cannot be removed");
	return AFS_OK;
}

/* What `made` names, last first, so that nested ones go before what they are in. */
static afs_err remove_made(struct state *s, struct buf *why)
{
	CLEANUP(str) char *file = path_in(s, "made");
	CLEANUP(str) char *text = file ? slurp(file) : NULL;
	if (!file)
		return AFS_ENOMEM;
	size_t n = text ? strlen(text) : 0;
	afs_err err = AFS_OK;
	while (n && err == AFS_OK) {
		size_t end = n;
		while (n && text[n - 1] != '\n')
			n--;
		CLEANUP(str) char *line = mem_strndup(text + n, end - n);
		n -= n ? 1 : 0;
		if (!line)
			return AFS_ENOMEM;
		if (strncmp(line, "dir /", 5) == 0 && strcmp(line + 4, s->dir) != 0)
			err = state_remove_tree(line + 4, why);
		else if (strncmp(line, "empty /", 7) == 0)
			(void)rmdir(line + 6); /* someone's things are in it: theirs */
	}
	return err;
}

/* --- making -------------------------------------------------------------------------------- */

static afs_err note_made(struct state *s, const char *kind, const char *path, struct buf *why)
{
	CLEANUP(str) char *file = path_in(s, "made");
	if (!file)
		return AFS_ENOMEM;
	CLEANUP(fd) int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || dprintf(fd, "%s %s\n", kind, path) < 0)
		return say(why, file, "cannot be written");
	return AFS_OK;
}

afs_err state_mkdir(struct state *s, const char *path, mode_t mode, bool erase_whole, struct buf *why)
{
	struct stat st;
	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return AFS_OK;
		errno = ENOTDIR;
		return say(why, path, "is needed as a directory");
	}
	if (errno != ENOENT)
		return say(why, path, "cannot be looked at");
	const char *slash = strrchr(path, '/');
	size_t n = strlen(s->dir);
	bool inside = strncmp(path, s->dir, n) == 0 && path[n] == '/';
	if (slash && slash != path) {
		CLEANUP(str) char *parent = mem_strndup(path, (size_t)(slash - path));
		if (!parent)
			return AFS_ENOMEM;
		TRY(state_mkdir(s, parent, inside ? 0711 : 0755, false, why));
	}
	if ((mkdir(path, mode) != 0 && errno != EEXIST) || chmod(path, mode) != 0)
		return say(why, path, "cannot be made");
	return inside ? AFS_OK : note_made(s, erase_whole ? "dir" : "empty", path, why);
}

static afs_err make_state_dir(struct state *s, struct buf *why)
{
	struct stat st;
	if (stat(s->dir, &st) == 0 && S_ISDIR(st.st_mode))
		return AFS_OK;
	/* Parents first, without a place to note them: /srv/x/y made for /srv/x/y/state stays. */
	for (char *p = s->dir + 1; *p; p++)
		if (*p == '/') {
			*p = '\0';
			int rc = mkdir(s->dir, 0755);
			if (rc == 0)
				rc = chmod(s->dir, 0755);
			int eno = errno;
			*p = '/';
			errno = eno;
			if (rc != 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
				return say(why, s->dir, "cannot be made");
		}
	/* Others may pass, for the run directory may be in it; all else in it is closed to them. */
	if (mkdir(s->dir, 0711) != 0 || chmod(s->dir, 0711) != 0)
		return say(why, s->dir, "cannot be made");
	s->dir_made = true;
	return AFS_OK;
}

/* --- the lock ------------------------------------------------------------------------------ */

static void read_holder(const char *path, struct state_holder *h)
{
	*h = (struct state_holder){};
	CLEANUP(str) char *text = slurp(path);
	for (char *p = text; p && *p;) {
		size_t n = strcspn(p, "\n");
		char *next = p + n + (p[n] == '\n');
		p[n] = '\0';
		if (strncmp(p, "pid ", 4) == 0)
			h->pid = (pid_t)strtol(p + 4, NULL, 10);
		else if (strncmp(p, "cell ", 5) == 0)
			snprintf(h->cell, sizeof(h->cell), "%s", p + 5);
		else if (strncmp(p, "socket ", 7) == 0)
			snprintf(h->socket, sizeof(h->socket), "%s", p + 7);
		p = next;
	}
}

static afs_err take_lock(struct state *s, const struct conf *conf, struct state_holder *holder, struct buf *why)
{
	CLEANUP(str) char *path = path_in(s, "lock");
	if (!path)
		return AFS_ENOMEM;
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0)
		return say(why, path, "cannot be opened");
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK)
			return say(why, path, "cannot be locked");
		read_holder(path, holder);
		buf_printf(why, "%s is in use by process %d (cell %s)", s->dir, (int)holder->pid,
			*holder->cell ? holder->cell : "?");
		return AFS_EBUSY;
	}
	struct stat held, named;
	if (fstat(s->lock_fd, &held) != 0 || stat(path, &named) != 0 || held.st_ino != named.st_ino
		|| held.st_dev != named.st_dev) {
		buf_printf(why, "%s was erased a moment ago; try again", s->dir);
		return AFS_EBUSY;
	}
	/* Written in place: a new file would not carry the lock. */
	CLEANUP(str) char *text = mem_printf("pid %d\ncell %s\nsocket %s/control\n", (int)getpid(), conf->cell, conf->run);
	if (!text)
		return AFS_ENOMEM;
	if (ftruncate(s->lock_fd, 0) != 0 || pwrite(s->lock_fd, text, strlen(text), 0) != (ssize_t)strlen(text))
		return say(why, path, "cannot be written");
	return AFS_OK;
}

/* --- version ------------------------------------------------------------------------------- */

/* Is anything but the lock in it? */
static bool has_content(const char *dir)
{
	DIR *d = opendir(dir);
	bool found = false;
	struct dirent *e;
	while (d && !found && (e = readdir(d)))
		found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0
			&& strcmp(e->d_name, "lock") != 0;
	if (d)
		closedir(d);
	return found;
}

/* Did afscell make the state directory itself? */
static bool made_dir(const struct state *s)
{
	CLEANUP(str) char *file = path_in(s, "made");
	CLEANUP(str) char *text = file ? slurp(file) : NULL;
	CLEANUP(str) char *line = mem_printf("dir %s\n", s->dir);
	return text && line && strncmp(text, line, strlen(line)) == 0;
}

static afs_err judge_version(struct state *s, const struct conf *conf, struct buf *why)
{
	CLEANUP(str) char *path = path_in(s, "version");
	CLEANUP(str) char *made = path_in(s, "made");
	if (!path || !made)
		return AFS_ENOMEM;
	CLEANUP(str) char *text = slurp(path);
	if (!text) {
		if (access(path, F_OK) == 0)
			return say(why, path, "cannot be read");
		s->fresh = true;
		if (!has_content(s->dir))
			return AFS_OK;
		if (access(made, F_OK) != 0) {
			buf_printf(why, "%s holds files, but is no state directory of afscell; "
					"choose another one (state: in the configuration), or empty it",
				s->dir);
			return AFS_ENOTEMPTY;
		}
		/* A first start was killed: begin again with nothing. */
		s->dir_made = made_dir(s);
		TRY(remove_made(s, why));
		return remove_content(s->dir, "lock", why);
	}
	int version = 0;
	char cell[64] = "";
	if (sscanf(text, "afscell state %d\ncell %63s\n", &version, cell) < 1) {
		buf_printf(why, "%s cannot be understood; is %s a state directory of afscell?", path, s->dir);
		return AFS_EVERSION;
	}
	if (version != STATE_VERSION) {
		buf_printf(why, "%s was made by another version of afscell (format %d; this one knows %d); "
				"use that version, or \"afscell down --erase\" with it and start anew",
			s->dir, version, STATE_VERSION);
		return AFS_EVERSION;
	}
	if (strcmp(cell, conf->cell) != 0) {
		buf_printf(why, "%s holds the cell %s, and the configuration is for %s; "
				"set cell: %s, or choose another state directory",
			s->dir, cell, conf->cell, cell);
		return AFS_EVERSION;
	}
	s->kept = true;
	return AFS_OK;
}

afs_err state_open(const struct conf *conf, bool create, struct state **out, struct state_holder *holder, struct buf *why)
{
	CLEANUP(state) struct state *s = mem_new(struct state);
	if (!s)
		return AFS_ENOMEM;
	s->lock_fd = -1;
	s->kept = true; /* until it is known to be fresh, nothing is ours to remove */
	s->dir = mem_strdup(conf->state);
	s->cell = mem_strdup(conf->cell);
	if (!s->dir || !s->cell)
		return AFS_ENOMEM;
	if (create) {
		TRY(make_state_dir(s, why));
	} else if (access(s->dir, F_OK) != 0) {
		buf_printf(why, "there is no state directory %s", s->dir);
		return AFS_ENOENT;
	}
	TRY(take_lock(s, conf, holder, why));
	TRY(judge_version(s, conf, why));
	if (s->fresh) {
		s->kept = false;
		CLEANUP(str) char *made = path_in(s, "made");
		if (s->dir_made)
			TRY(note_made(s, "dir", s->dir, why));
		else if (made)
			TRY(spit(made, "", 0600, why));
	}
	*out = TAKE(s);
	return AFS_OK;
}

bool state_is_fresh(const struct state *s) { return s->fresh; }

afs_err state_keep(struct state *s, struct buf *why)
{
	if (s->kept)
		return AFS_OK;
	CLEANUP(str) char *path = path_in(s, "version");
	CLEANUP(str) char *text = mem_printf("afscell state %d\ncell %s\n", STATE_VERSION, s->cell);
	if (!path || !text)
		return AFS_ENOMEM;
	TRY(spit(path, text, 0600, why));
	s->kept = true;
	return AFS_OK;
}

/* Everything away, the state directory itself when afscell made it. */
static afs_err remove_all(struct state *s, struct buf *why)
{
	bool own = made_dir(s);
	TRY(remove_made(s, why));
	TRY(remove_content(s->dir, "lock", why));
	CLEANUP(str) char *lock = path_in(s, "lock");
	if (lock && unlink(lock) != 0 && errno != ENOENT) /* last: whoever waits for it sees that it went */
		return say(why, lock, "cannot be removed");
	if (own && rmdir(s->dir) != 0 && errno != ENOENT && errno != ENOTEMPTY)
		return say(why, s->dir, "cannot be removed");
	return AFS_OK;
}

void state_close(struct state *s)
{
	if (!s)
		return;
	if (!s->kept && s->fresh) {
		CLEANUP(buf) struct buf why = {};
		if (remove_all(s, &why) != AFS_OK)
			log_warn("cell.state.undo_failed why=\"%s\"", why.data ? why.data : "");
	}
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	mem_free(s->dir);
	mem_free(s->cell);
	mem_free(s);
}

afs_err state_uuid(struct state *s, uint8_t out[16], struct buf *why)
{
	CLEANUP(str) char *path = path_in(s, "uuid");
	if (!path)
		return AFS_ENOMEM;
	CLEANUP(str) char *text = slurp(path);
	if (text && strlen(text) >= 32) {
		for (int i = 0; i < 16; i++) {
			unsigned v;
			if (sscanf(text + 2 * i, "%2x", &v) != 1) {
				buf_printf(why, "%s is damaged: expected 32 hexadecimal digits", path);
				return AFS_ECORRUPT;
			}
			out[i] = (uint8_t)v;
		}
		return AFS_OK;
	}
	if (text || access(path, F_OK) == 0) {
		buf_printf(why, "%s is damaged: expected 32 hexadecimal digits", path);
		return AFS_ECORRUPT;
	}
	rand_bytes(out, 16);
	out[6] = (uint8_t)((out[6] & 0x0f) | 0x40); /* version 4, variant 1: RFC 4122 */
	out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
	char hex[34];
	for (int i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", out[i]);
	hex[32] = '\n';
	hex[33] = '\0';
	return spit(path, hex, 0600, why);
}

afs_err state_erase(struct state *s, const struct conf *conf, struct buf *why)
{
	/* What lies outside and was there before us: only what is surely ours. */
	for (size_t i = 0; i < conf->partition_count; i++) {
		CLEANUP(str) char *vol = mem_printf("%s/vol", conf->partitions[i].path);
		if (!vol)
			return AFS_ENOMEM;
		TRY(state_remove_tree(vol, why));
	}
	const char *const files[] = {conf->log.file, conf->audit.file};
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		(void)unlink(files[i]); /* often inside the state directory, and gone with it */
		for (unsigned k = 1; k < 100; k++) {
			CLEANUP(str) char *old = mem_printf("%s.%u", files[i], k);
			if (old && unlink(old) != 0)
				break;
		}
	}
	TRY(remove_all(s, why));
	s->kept = true;
	state_close(s);
	return AFS_OK;
}
