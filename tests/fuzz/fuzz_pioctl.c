/* SPDX-License-Identifier: BSD-2-Clause
 * Blobs of cache-manager calls: the first byte chooses the call, the rest is its input.  A cache
 * manager that takes every token and has one stands behind. */
#include "client/pioctl/pioctl.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint8_t touched; /* what is handed on must be readable */

afs_err client_token_set(struct client *c, uid_t uid, const struct client_token *t)
{
	(void)c, (void)uid;
	for (size_t i = 0; i < t->kad.ticket_len; i++)
		touched ^= t->kad.ticket[i];
	touched ^= (uint8_t)strlen(t->cell);
	return AFS_OK;
}

afs_err client_token_get(struct client *c, uid_t uid, const char *cell, struct arena *a, struct client_token *out)
{
	(void)c, (void)uid, (void)a;
	touched ^= (uint8_t)strlen(cell);
	*out = (struct client_token){.cell = "a.test", .name = "", .kad = {.ticket = (const uint8_t *)"ticket", .ticket_len = 6}};
	return AFS_OK;
}

size_t client_token_list(struct client *c, uid_t uid, struct client_token_info *out, size_t cap)
{
	(void)c, (void)uid;
	if (cap)
		snprintf(out[0].cell, sizeof(out[0].cell), "a.test");
	return 1;
}

afs_err client_token_drop(struct client *c, uid_t uid, const char *cell)
{
	(void)c, (void)uid;
	touched ^= cell ? (uint8_t)strlen(cell) : 0;
	return AFS_OK;
}

afs_err client_cell_at(struct client *c, size_t index, char name[RX_NAME_MAX], uint32_t *ips, size_t cap, size_t *n)
{
	(void)c, (void)ips, (void)cap;
	if (index)
		return AFS_ENOENT;
	snprintf(name, RX_NAME_MAX, "a.test");
	if (n)
		*n = 0;
	return AFS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t calls[] = {PIOCTL_SETTOK, PIOCTL_GETTOK, PIOCTL_UNLOG, PIOCTL_CKCONN, PIOCTL_GETCELL,
		PIOCTL_GET_WS_CELL, PIOCTL_GETALIAS, PIOCTL_GETTOK2, PIOCTL_SETTOK2, PIOCTL_UNLOG_CELL};
	struct arena a;
	struct xdr_bytes out;
	if (!size)
		return 0;
	arena_init(&a, 1 << 20);
	pioctl_run(NULL, 1000, calls[data[0] % ARRAY_SIZE(calls)], (struct xdr_bytes){data + 1, (uint32_t)(size - 1)}, &a, &out);
	for (uint32_t i = 0; i < out.len; i++)
		touched ^= out.p[i];
	arena_fini(&a);
	return 0;
}
