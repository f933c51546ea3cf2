/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/cli/keyring.h"

#include "cell/proto/token.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void say(struct buf *why, int eno)
{
	switch (eno) {
	case ENODEV:
		buf_puts(why, "this kernel knows no keys of type rxrpc: load its AFS client (modprobe kafs), or use one that is built with it");
		return;
	case ENOSYS:
		buf_puts(why, "this kernel has no keyrings");
		return;
	case EPROTONOSUPPORT:
	case ENOPKG:
		buf_puts(why, "this kernel's AFS client does not know the token's class: ask for -class rxkad, or use a kernel with CONFIG_RXGK");
		return;
	case EDQUOT:
		buf_puts(why, "your quota of keys is used up (/proc/key-users)");
		return;
	default: buf_printf(why, "the kernel does not take the key: %s", strerror(eno));
	}
}

afs_err keyring_add(const struct keys_token *t, struct buf *why)
{
	uint8_t payload[TOKEN_BLOB_MAX];
	char name[RX_NAME_MAX + 4];
	size_t n;
	afs_err err = token_blob_put(&t->both, t->cell, 0, payload, sizeof(payload), &n);
	if (err != AFS_OK) {
		buf_printf(why, "the token cannot be a key: %s", afs_err_text(err));
		return err;
	}
	snprintf(name, sizeof(name), "afs@%s", t->cell);
	long key = syscall(SYS_add_key, "rxrpc", name, payload, n, KEY_SPEC_SESSION_KEYRING);
	int eno = errno;
	explicit_bzero(payload, sizeof(payload));
	if (key >= 0)
		return AFS_OK;
	say(why, eno);
	return afs_err_from_errno(eno);
}
