/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/openafs.h"

#include "cell/adapters.h"
#include "cell/base/mem.h"
#include "cell/base/text.h"
#include "cell/keys/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static afs_err put_file(const char *dir, const char *name, const struct buf *text, struct buf *why)
{
	CLEANUP(str) char *path = mem_printf("%s/%s", dir, name);
	CLEANUP(str) char *tmp = mem_printf("%s/%s.new", dir, name);
	if (!path || !tmp || text->err)
		return AFS_ENOMEM;
	CLEANUP(fd) int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0 || write(fd, text->data, text->len) != (ssize_t)text->len || rename(tmp, path) != 0) {
		int eno = errno;
		buf_printf(why, "%s cannot be written: %s", path, strerror(eno));
		(void)unlink(tmp);
		return afs_err_from_errno(eno);
	}
	return AFS_OK;
}

static afs_err put_dir(const char *dir, mode_t mode, struct buf *why)
{
	struct stat st;
	if (mkdir(dir, mode) == 0 || (errno == EEXIST && stat(dir, &st) == 0 && S_ISDIR(st.st_mode)))
		return AFS_OK;
	int eno = errno;
	buf_printf(why, "%s cannot be made: %s", dir, strerror(eno));
	return afs_err_from_errno(eno);
}

static afs_err put_common(const struct conf *conf, const char *dir, struct buf *why)
{
	CLEANUP(buf) struct buf this = {}, db = {};
	buf_printf(&this, "%s\n", conf->cell);
	buf_printf(&db, ">%s\t# made by afscell\n", conf->cell);
	struct rx_addr addrs[ADAPTERS_ADDRS_MAX];
	size_t n = adapters_database_servers(conf, 0, addrs, ADAPTERS_ADDRS_MAX);
	for (size_t i = 0; i < n; i++)
		buf_printf(&db, "%s\t#db%zu.%s\n", IPV4(addrs[i].ip), i + 1, conf->cell);
	TRY(put_file(dir, "ThisCell", &this, why));
	return put_file(dir, "CellServDB", &db, why);
}

afs_err openafs_write(const struct conf *conf, const char *dir, struct buf *why)
{
	CLEANUP(str) char *keytab = adapters_keytab(conf);
	CLEANUP(str) char *server = mem_printf("%s/server", dir);
	if (!keytab || !server)
		return AFS_ENOMEM;
	CLEANUP(keys) struct keys *keys = NULL;
	struct keys_config kc = {.cell = conf->cell, .keytab = keytab};
	TRY(keys_open(&kc, &keys, why));

	TRY(put_dir(dir, 0755, why));
	TRY(put_dir(server, 0700, why));
	TRY(put_common(conf, dir, why));
	TRY(put_common(conf, server, why));
	CLEANUP(buf) struct buf users = {}, krb = {};
	for (size_t i = 0; i < conf->administrators.n; i++)
		buf_printf(&users, "%s\n", conf->administrators.v[i]);
	if (!users.data)
		buf_puts(&users, "");
	TRY(put_file(server, "UserList", &users, why));
	buf_printf(&krb, "%s\n", conf->realm.name);
	TRY(put_file(server, "krb.conf", &krb, why));
	return keys_write_openafs(keys, conf->realm.name, server, why);
}
