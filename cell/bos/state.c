/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The overseer's file:
 *
 *   {"version": 1, "stopped": ["vlserver"], "users": ["alice"],
 *    "restart": [16, 0, 0, 0, 0], "new_binaries": [3, 5, 0, 0, 0]}
 *
 * times as mask, hour, minute, second, day.  It is written beside its place, synced and renamed. */
#include "cell/bos/inside.h"

#include "cell/base/log.h"
#include "cell/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { VERSION_NOW = 1, FILE_MAX = 1 << 20, TIME_WORDS = 5 };

DEFINE_CLEANUP_PTR(json, json_t, json_decref)

void bos_state_init(struct bos_state *st)
{
	*st = (struct bos_state){.general = {.mask = BOS_KT_NEVER}, .newbin = {.mask = BOS_KT_HOUR | BOS_KT_MIN, .hour = 5}};
	for (int i = 0; i < BOS_INSTANCES_MAX; i++)
		st->file_goal[i] = BOS_RUNNING;
}

void bos_state_fini(struct bos_state *st)
{
	for (size_t i = 0; i < st->user_count; i++)
		mem_free(st->users[i]);
	mem_free(st->users);
	*st = (struct bos_state){};
}

/* Letters that names of principals have. */
bool bos_user_ok(const char *name, size_t n)
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@/";
	if (!n || n > 2 * RX_NAME_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!name[i] || !strchr(legal, name[i]))
			return false;
	return true;
}

bool bos_time_ok(const struct bozo_netKTime *t)
{
	static const int32_t known = BOS_KT_HOUR | BOS_KT_MIN | BOS_KT_SEC | BOS_KT_DAY | BOS_KT_NEVER | BOS_KT_NOW;
	return !(t->mask & ~known) && t->hour >= 0 && t->hour < 24 && t->min >= 0 && t->min < 60 && t->sec >= 0 && t->sec < 60 && t->day >= 0
	       && t->day < 7;
}

int64_t bos_time_next(const struct bozo_netKTime *t, int64_t after)
{
	enum { DAYS = 9, HOURS = 24 }; /* a week, and what summer time may cut from it */
	time_t start = (time_t)after;
	struct tm now;
	if (t->mask & (BOS_KT_NEVER | BOS_KT_NOW) || !localtime_r(&start, &now))
		return INT64_MAX;
	int64_t best = INT64_MAX;
	bool any_hour = !(t->mask & BOS_KT_HOUR);
	for (int day = 0; day < DAYS; day++)
		for (int hour = any_hour ? 0 : t->hour; hour < (any_hour ? HOURS : t->hour + 1); hour++) {
			struct tm at = {.tm_year = now.tm_year,
				.tm_mon = now.tm_mon,
				.tm_mday = now.tm_mday + day,
				.tm_hour = hour,
				.tm_min = t->mask & BOS_KT_MIN ? t->min : 0,
				.tm_sec = t->mask & BOS_KT_SEC ? t->sec : 0,
				.tm_isdst = -1};
			int64_t when = mktime(&at); /* and tm_wday */
			if (t->mask & BOS_KT_DAY && at.tm_wday != t->day)
				continue;
			if (when > after && when < best)
				best = when;
		}
	return best;
}

static bool read_time(const json_t *v, struct bozo_netKTime *out)
{
	if (!v)
		return true;
	json_int_t w[TIME_WORDS];
	if (json_array_size(v) != TIME_WORDS)
		return false;
	for (size_t i = 0; i < TIME_WORDS; i++) {
		const json_t *n = json_array_get(v, i);
		if (!json_is_integer(n))
			return false;
		w[i] = json_integer_value(n);
		if (w[i] < 0 || w[i] > 255)
			return false;
	}
	*out = (struct bozo_netKTime){(int32_t)w[0], (int32_t)w[1], (int32_t)w[2], (int32_t)w[3], (int32_t)w[4]};
	return bos_time_ok(out);
}

static afs_err read_users(const json_t *v, struct bos_state *st)
{
	size_t n = json_array_size(v), i;
	const json_t *name;
	if (v && (!json_is_array(v) || n > BOS_USERS_MAX))
		return AFS_ECORRUPT;
	st->users = mem_new_array(n ? n : 1, char *);
	if (!st->users)
		return AFS_ENOMEM;
	json_array_foreach(v, i, name)
	{
		const char *text = json_string_value(name);
		if (!text || json_string_length(name) != strlen(text) || !bos_user_ok(text, strlen(text)))
			return AFS_ECORRUPT;
		st->users[i] = mem_strdup(text);
		if (!st->users[i])
			return AFS_ENOMEM;
		st->user_count = i + 1;
	}
	return AFS_OK;
}

static afs_err read_all(const json_t *o, const struct bos_instance *instances, size_t count, struct bos_state *st)
{
	const json_t *stopped = json_object_get(o, "stopped"), *name;
	size_t k;
	if (json_integer_value(json_object_get(o, "version")) != VERSION_NOW || (stopped && !json_is_array(stopped)))
		return AFS_ECORRUPT;
	json_array_foreach(stopped, k, name)
	{
		const char *text = json_string_value(name);
		for (size_t i = 0; text && i < count; i++)
			if (strcmp(instances[i].name, text) == 0)
				st->file_goal[i] = BOS_SHUTDOWN;
	}
	if (!read_time(json_object_get(o, "restart"), &st->general) || !read_time(json_object_get(o, "new_binaries"), &st->newbin))
		return AFS_ECORRUPT;
	return read_users(json_object_get(o, "users"), st);
}

afs_err bos_state_parse(const char *text, size_t n, const struct bos_instance *instances, size_t count, struct bos_state *out)
{
	struct bos_state st;
	CLEANUP(json) json_t *o = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	if (!o || !json_is_object(o))
		return AFS_ECORRUPT;
	bos_state_init(&st);
	afs_err err = read_all(o, instances, count, &st);
	if (err != AFS_OK) {
		bos_state_fini(&st);
		return err;
	}
	bos_state_fini(out);
	*out = st;
	return AFS_OK;
}

afs_err bos_state_load(const char *path, const struct bos_instance *instances, size_t count, struct bos_state *out)
{
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	if (fd < 0 && errno == ENOENT)
		return AFS_OK;
	if (fd < 0 || fstat(fd, &st) != 0)
		return log_error(AFS_EIO, "bos.state.unreadable path=%s why=\"%s\"", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
		return log_error(AFS_ECORRUPT, "bos.state.not_ours path=%s", path);
	CLEANUP(str) char *text = mem_alloc((size_t)st.st_size + 1, 1);
	if (!text)
		return AFS_ENOMEM;
	size_t n = 0;
	while (n < (size_t)st.st_size) {
		ssize_t k = read(fd, text + n, (size_t)st.st_size - n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return log_error(AFS_EIO, "bos.state.unreadable path=%s why=\"%s\"", path, strerror(errno));
		if (k == 0)
			break;
		n += (size_t)k;
	}
	afs_err err = bos_state_parse(text, n, instances, count, out);
	if (err == AFS_ECORRUPT)
		return log_error(err, "bos.state.damaged path=%s: remove it to begin with what is usual", path);
	return err;
}

static json_t *time_json(const struct bozo_netKTime *t) { return json_pack("[i,i,i,i,i]", t->mask, t->hour, t->min, t->sec, t->day); }

static afs_err write_file(const char *tmp, const char *path, const char *text)
{
	size_t n = strlen(text);
	CLEANUP(fd) int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return afs_err_from_errno(errno);
	while (n) {
		ssize_t k = write(fd, text, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return afs_err_from_errno(errno);
		text += k;
		n -= (size_t)k;
	}
	if (fsync(fd) != 0 || rename(tmp, path) != 0)
		return afs_err_from_errno(errno);
	return AFS_OK;
}

afs_err bos_state_save(const char *path, const struct bos_instance *instances, size_t count, const struct bos_state *st)
{
	json_t *stopped = json_array(), *users = json_array();
	for (size_t i = 0; i < count; i++)
		if (st->file_goal[i] == BOS_SHUTDOWN)
			json_array_append_new(stopped, json_string(instances[i].name));
	for (size_t i = 0; i < st->user_count; i++)
		json_array_append_new(users, json_string(st->users[i]));
	CLEANUP(json) json_t *o = json_pack("{s:i, s:o, s:o, s:o, s:o}", "version", VERSION_NOW, "stopped", stopped, "users", users, "restart",
		time_json(&st->general), "new_binaries", time_json(&st->newbin));
	char *text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
	CLEANUP(str) char *tmp = mem_printf("%s.new", path);
	afs_err err = text && tmp ? write_file(tmp, path, text) : AFS_ENOMEM;
	free(text);
	if (err != AFS_OK) {
		if (tmp)
			(void)unlink(tmp);
		return log_error(err, "bos.state.not_written path=%s err=%s", path, afs_err_name(err));
	}
	return AFS_OK;
}
