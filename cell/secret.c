/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/secret.h"

#include "cell/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum { PASSWORD_MAX = 1024 };

void secret_free(char *s)
{
	if (!s)
		return;
	explicit_bzero(s, strlen(s));
	mem_free(s);
}

bool secret_is_given(const struct conf_user *user)
{
	return *user->password_file || (*user->password_env && getenv(user->password_env));
}

static afs_err from_file(const char *path, char **out, struct buf *why)
{
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[PASSWORD_MAX + 1];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0) {
		int eno = errno;
		buf_printf(why, "password file %s cannot be read: %s", path, strerror(eno));
		return afs_err_from_errno(eno);
	}
	text[n] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	afs_err err = AFS_OK;
	if (!*text) {
		buf_printf(why, "password file %s is empty; its first line is to be the password", path);
		err = AFS_EINVAL;
	} else if (!(*out = mem_strdup(text))) {
		err = AFS_ENOMEM;
	}
	explicit_bzero(text, sizeof(text));
	return err;
}

static bool ask(FILE *tty, const char *question, const char *user, char *out, size_t size)
{
	struct termios was, quiet;
	bool can_hide = tcgetattr(fileno(tty), &was) == 0;
	if (can_hide) {
		quiet = was;
		quiet.c_lflag &= ~(tcflag_t)ECHO;
		tcsetattr(fileno(tty), TCSAFLUSH, &quiet);
	}
	fprintf(tty, "%s %s: ", question, user);
	fflush(tty);
	bool ok = fgets(out, (int)size, tty);
	if (can_hide)
		tcsetattr(fileno(tty), TCSAFLUSH, &was);
	fputc('\n', tty);
	out[strcspn(out, "\r\n")] = '\0';
	return ok;
}

static afs_err from_terminal(const char *user, char **out, struct buf *why)
{
	FILE *tty = fopen("/dev/tty", "r+e");
	if (!tty) {
		buf_printf(why, "the password of %s is to be asked for, but there is no terminal; "
				"use password_file or password_env", user);
		return AFS_ENODEV;
	}
	setvbuf(tty, NULL, _IONBF, 0);
	char first[PASSWORD_MAX] = "", second[PASSWORD_MAX] = "";
	afs_err err = AFS_OK;
	if (!ask(tty, "\nNew password of", user, first, sizeof(first)) || !*first) {
		buf_printf(why, "no password was given for %s", user);
		err = AFS_EINVAL;
	} else if (!ask(tty, "The same again for", user, second, sizeof(second)) || strcmp(first, second) != 0) {
		buf_printf(why, "the two passwords for %s differ", user);
		err = AFS_EINVAL;
	} else if (!(*out = mem_strdup(first))) {
		err = AFS_ENOMEM;
	}
	explicit_bzero(first, sizeof(first));
	explicit_bzero(second, sizeof(second));
	fclose(tty);
	return err;
}

afs_err secret_ask(const char *who, char **out, struct buf *why)
{
	*out = NULL;
	FILE *tty = fopen("/dev/tty", "r+e");
	if (!tty) {
		buf_printf(why, "the password of %s is to be asked for, but there is no terminal; use -pipe", who);
		return AFS_ENODEV;
	}
	setvbuf(tty, NULL, _IONBF, 0);
	char text[PASSWORD_MAX] = "";
	afs_err err = AFS_OK;
	if (!ask(tty, "Password for", who, text, sizeof(text)) || !*text) {
		buf_printf(why, "no password was given for %s", who);
		err = AFS_EINVAL;
	} else if (!(*out = mem_strdup(text))) {
		err = AFS_ENOMEM;
	}
	explicit_bzero(text, sizeof(text));
	fclose(tty);
	return err;
}

afs_err secret_get(const struct conf_user *user, char **out, struct buf *why)
{
	*out = NULL;
	if (*user->password_file)
		return from_file(user->password_file, out, why);
	if (*user->password_env) {
		const char *v = getenv(user->password_env);
		if (!v || !*v) {
			buf_printf(why, "the password of %s is to be in the environment variable %s, which is %s",
				user->name, user->password_env, v ? "empty" : "not set");
			return v ? AFS_EINVAL : AFS_ENOENT;
		}
		*out = mem_strdup(v);
		return *out ? AFS_OK : AFS_ENOMEM;
	}
	return user->password == CONF_SECRET_PROMPT ? from_terminal(user->name, out, why) : AFS_OK;
}
