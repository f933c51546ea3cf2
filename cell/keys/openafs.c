/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The key files of stock OpenAFS.  All integers big-endian.
 *   KeyFile     count, then per key: kvno, 8 bytes
 *   KeyFileExt  count, then per key: 16 (bytes of this head), type 2 (rxkad_krb5), kvno, enctype,
 *               length, bytes
 *   rxkad.keytab  an MIT keytab; servers before 1.8 read it, 1.8 has KeyFileExt
 * Each is written beside its place and renamed.  Source: protocol rx-security.md §6. */
#include "cell/base/log.h"
#include "cell/keys/set.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_TYPE_RXKAD_KRB5 = 2, EXT_HEAD = 16 };

static void put32(struct buf *b, uint32_t v)
{
	v = htobe32(v);
	buf_put(b, &v, sizeof(v));
}

static afs_err fail(struct buf *why, const char *path, int eno)
{
	keys_why(why, "%s: %s", path, strerror(eno));
	return afs_err_from_errno(eno);
}

static afs_err replace(const char *tmp, const char *path, struct buf *why)
{
	if (rename(tmp, path)) {
		int eno = errno;
		unlink(tmp);
		return fail(why, path, eno);
	}
	return AFS_OK;
}

afs_err keys_write_file(const char *dir, const char *name, const struct buf *b, struct buf *why)
{
	CLEANUP(str) char *path = mem_printf("%s/%s", dir, name);
	CLEANUP(str) char *tmp = mem_printf("%s/.%s.new", dir, name);
	if (b->err || !path || !tmp)
		return AFS_ENOMEM;
	CLEANUP(fd) int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fail(why, tmp, errno);
	for (size_t at = 0; at < b->len;) {
		ssize_t n = write(fd, b->data + at, b->len - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int eno = errno;
			unlink(tmp);
			return fail(why, tmp, eno);
		}
		at += (size_t)n;
	}
	if (fchmod(fd, 0600)) {
		int eno = errno;
		unlink(tmp);
		return fail(why, tmp, eno);
	}
	return replace(tmp, path, why);
}

static krb5_error_code keytab_add(
	krb5_context ctx, krb5_keytab kt, krb5_principal who, const struct keyset *set)
{
	krb5_error_code code = 0;
	for (size_t i = 0; i < set->n && !code; i++) {
		const struct key *k = &set->key[i];
		krb5_keytab_entry e = {.principal = who,
			.vno = (krb5_kvno)k->kvno,
			.key = {.enctype = k->enctype,
				.length = k->len,
				.contents = (krb5_octet *)(uintptr_t)k->bytes}};
		code = krb5_kt_add_entry(ctx, kt, &e);
	}
	return code;
}

static afs_err write_keytab(const char *cell, const struct keyset *set, const char *realm,
	const char *dir, struct buf *why)
{
	CLEANUP(str) char *path = mem_printf("%s/rxkad.keytab", dir);
	CLEANUP(str) char *tmp = mem_printf("%s/.rxkad.keytab.new", dir);
	CLEANUP(str) char *name = mem_printf("WRFILE:%s/.rxkad.keytab.new", dir);
	krb5_context ctx;
	krb5_keytab kt = NULL;
	krb5_principal who = NULL;
	if (!path || !tmp || !name || keys_krb5_bare(&ctx))
		return AFS_ENOMEM;
	if (unlink(tmp) && errno != ENOENT) {
		krb5_free_context(ctx);
		return fail(why, tmp, errno);
	}
	krb5_error_code code = krb5_build_principal(
		ctx, &who, (unsigned)strlen(realm), realm, "afs", cell, (char *)NULL);
	if (!code)
		code = krb5_kt_resolve(ctx, name, &kt);
	if (!code)
		code = keytab_add(ctx, kt, who, set); /* libkrb5 makes the file with mode 0600 */
	if (code)
		keys_why_krb5(why, ctx, code, "%s", tmp);
	if (kt)
		krb5_kt_close(ctx, kt);
	if (who)
		krb5_free_principal(ctx, who);
	krb5_free_context(ctx);
	if (code) {
		unlink(tmp);
		return code > 0 && code < 200 ? afs_err_from_errno((int)code) : AFS_EIO;
	}
	return replace(tmp, path, why);
}

static afs_err write_all(const char *cell, const struct keyset *set, const char *realm,
	const char *dir, struct buf *why)
{
	CLEANUP(buf) struct buf ext = {}, des = {};
	uint32_t des_n = 0;
	for (size_t i = 0; i < set->n; i++)
		des_n += key_is_des(set->key[i].enctype);
	put32(&ext, (uint32_t)set->n - des_n);
	put32(&des, des_n);
	for (size_t i = 0; i < set->n; i++) {
		const struct key *k = &set->key[i];
		if (key_is_des(k->enctype)) {
			put32(&des, (uint32_t)k->kvno);
			buf_put(&des, k->bytes, 8);
			continue;
		}
		put32(&ext, EXT_HEAD);
		put32(&ext, KEY_TYPE_RXKAD_KRB5);
		put32(&ext, (uint32_t)k->kvno);
		put32(&ext, (uint32_t)k->enctype);
		put32(&ext, k->len);
		buf_put(&ext, k->bytes, k->len);
	}
	afs_err err = keys_write_file(dir, "KeyFileExt", &ext, why);
	if (!err)
		err = write_keytab(cell, set, realm, dir, why);
	if (!err && des_n)
		err = keys_write_file(dir, "KeyFile", &des, why);
	if (ext.data)
		explicit_bzero(ext.data, ext.len);
	if (des.data)
		explicit_bzero(des.data, des.len);
	return err;
}

afs_err keys_write_openafs(struct keys *keys, const char *realm, const char *dir, struct buf *why)
{
	CLEANUP(heap) struct keyset *set = mem_new(struct keyset);
	if (!set)
		return AFS_ENOMEM;
	mtx_lock(&keys->lock);
	*set = keys->set;
	mtx_unlock(&keys->lock);
	afs_err err = write_all(keys->cell, set, realm, dir, why);
	explicit_bzero(set, sizeof(*set));
	return err;
}
