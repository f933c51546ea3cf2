/* SPDX-License-Identifier: BSD-2-Clause
 * The calls, as functions of blobs.  Old blobs are unaligned words in the network's order (the
 * tools' RMTSYS side swaps them), new ones XDR. */
#include "client/pioctl/pioctl.h"

#include "cell/proto/token.h"

#include <errno.h>
#include <string.h>

enum { CLEAR_TOKEN = 24, OLD_TICKET_LEAST = 56, TICKET_MAX = 12000, TOKENS_MAX = 32 };

static int errno_of(afs_err err)
{
	switch (err) {
	case AFS_ENOENT: return ESRCH; /* no such cell */
	case AFS_EEXPIRED: return EINVAL;
	default: return afs_err_errno(err);
	}
}

static int give(struct arena *arena, const void *p, size_t n, struct xdr_bytes *out)
{
	uint8_t *copy = arena_alloc(arena, n ? n : 1, 1);
	if (!copy)
		return ENOMEM;
	if (n)
		memcpy(copy, p, n);
	*out = (struct xdr_bytes){copy, (uint32_t)n};
	return 0;
}

static int set_token(struct client *client, uid_t uid, const char *cell, const struct rx_token *both)
{
	struct client_token token = {.cell = cell, .name = "", .both = *both};
	if (!rx_token_any(both))
		return EINVAL;
	afs_err err = client_token_set(client, uid, &token);
	return err ? errno_of(err) : 0;
}

static afs_err local_cell(struct client *client, char out[RX_NAME_MAX])
{
	return client_cell_at(client, 0, out, NULL, 0, NULL);
}

/* ticket length, ticket, 24, ClearToken, then perhaps flags and a cell's name */
static int set_old(struct client *client, uid_t uid, struct xdr_bytes in)
{
	const uint8_t *p = in.p, *end = in.p + in.len;
	char cell[RX_NAME_MAX];
	if (in.len < 4)
		return EINVAL;
	uint32_t ticket_len = be32_get(p);
	p += 4;
	if (ticket_len > TICKET_MAX || ticket_len > (size_t)(end - p))
		return EINVAL;
	struct rxkad_token kad = {.ticket = p, .ticket_len = ticket_len};
	p += ticket_len;
	if (end - p < 4 + CLEAR_TOKEN || be32_get(p) != CLEAR_TOKEN)
		return EINVAL;
	p += 4;
	kad.kvno = (int32_t)be32_get(p);
	memcpy(kad.session_key, p + 4, 8);
	kad.begins = SEC((int64_t)be32_get(p + 16));
	kad.expires = SEC((int64_t)be32_get(p + 20));
	p += CLEAR_TOKEN;
	if (local_cell(client, cell) != AFS_OK)
		return EIO;
	if (end - p >= 4 && be32_get(p) & 0x8000)
		return EINVAL; /* a new PAG for the caller's parent: nobody but a kernel can do that */
	if (end - p > 4) {
		const uint8_t *name = p + 4;
		size_t n = strnlen((const char *)name, (size_t)(end - name));
		if (n == (size_t)(end - name) || n >= sizeof(cell))
			return EINVAL;
		if (n)
			memcpy(cell, name, n + 1);
	}
	return set_token(client, uid, cell, &(struct rx_token){.kad = kad});
}

static int set_new(struct client *client, uid_t uid, struct xdr_bytes in, struct arena *arena)
{
	struct token_blob blob;
	if (token_blob_get(in.p, in.len, arena, &blob) != AFS_OK)
		return EINVAL; /* also when there is none of a kind that this cache manager uses */
	int eno = set_token(client, uid, blob.cell, &blob.token);
	explicit_bzero(&blob, sizeof(blob));
	return eno;
}

/* The index counts only cells for which this caller has tokens; "" is the local cell. */
static int find_token(struct client *client, uid_t uid, bool by_index, uint32_t index, const char *cell,
	struct arena *arena, struct client_token *out)
{
	char name[RX_NAME_MAX];
	struct client_token_info info[TOKENS_MAX];
	if (by_index) {
		size_t n = client_token_list(client, uid, info, TOKENS_MAX);
		if (index >= MIN(n, (size_t)TOKENS_MAX))
			return EDOM;
		cell = info[index].cell;
	} else if (!cell[0]) {
		if (local_cell(client, name) != AFS_OK)
			return EIO;
		cell = name;
	}
	return client_token_get(client, uid, cell, arena, out) == AFS_OK ? 0 : ENOTCONN;
}

static int get_old(struct client *client, uid_t uid, struct xdr_bytes in, struct arena *arena, struct xdr_bytes *out)
{
	struct client_token t;
	bool by_index = in.len >= 4;
	int eno = find_token(client, uid, by_index, by_index ? be32_get(in.p) : 0, "", arena, &t);
	if (eno)
		return eno;
	if (!rx_token_has_kad(&t.both))
		return ENOTCONN; /* the old call has no words for rxgk */
	size_t ticket = MAX(t.kad.ticket_len, (size_t)OLD_TICKET_LEAST), cell = strlen(t.cell) + 1;
	uint8_t *b = arena_alloc(arena, 8 + ticket + CLEAR_TOKEN + 4 + cell, 1);
	if (!b)
		return ENOMEM;
	uint8_t *p = b;
	be32_put(p, (uint32_t)ticket);
	memcpy(p + 4, t.kad.ticket, t.kad.ticket_len);
	p += 4 + ticket;
	be32_put(p, CLEAR_TOKEN);
	be32_put(p + 4, (uint32_t)t.kad.kvno);
	memcpy(p + 8, t.kad.session_key, 8);
	/* an even lifetime says that the next word is the local user */
	uint32_t begins = clk_wire_sec(t.kad.begins), expires = clk_wire_sec(t.kad.expires);
	be32_put(p + 16, uid);
	be32_put(p + 20, begins + ((expires - begins) & 1));
	be32_put(p + 24, expires);
	p += 4 + CLEAR_TOKEN;
	if (by_index) {
		be32_put(p, 1);
		memcpy(p + 4, t.cell, cell);
		p += 4 + cell;
	}
	*out = (struct xdr_bytes){b, (uint32_t)(p - b)};
	return 0;
}

static int get_new(struct client *client, uid_t uid, struct xdr_bytes in, struct arena *arena, struct xdr_bytes *out)
{
	struct client_token t;
	char name[RX_NAME_MAX] = "";
	/* four bytes are an index in the host's order, unless they spell a cell of three letters */
	bool by_index = in.len == 4 && !(in.p[3] == 0 && in.p[0] && in.p[1] && in.p[2]);
	uint32_t index = 0;
	if (by_index) {
		memcpy(&index, in.p, 4);
	} else if (in.len) {
		size_t n = strnlen((const char *)in.p, in.len);
		if (n >= sizeof(name))
			return EINVAL;
		memcpy(name, in.p, n);
	}
	int eno = find_token(client, uid, by_index, index, name, arena, &t);
	if (eno == ENOTCONN)
		eno = EDOM; /* the same to tools, which print a warning at any other number */
	if (eno)
		return eno;
	uint8_t *blob = arena_alloc(arena, TOKEN_BLOB_MAX, 1);
	size_t n;
	if (!blob)
		return ENOMEM;
	if (token_blob_put(&t.both, t.cell, (int32_t)uid, blob, TOKEN_BLOB_MAX, &n) != AFS_OK)
		return E2BIG;
	*out = (struct xdr_bytes){blob, (uint32_t)n};
	return 0;
}

/* Eight addresses in the network's order, then the cell's name. */
static int get_cell(struct client *client, struct xdr_bytes in, struct arena *arena, struct xdr_bytes *out)
{
	uint8_t blob[8 * 4 + RX_NAME_MAX] = {0};
	char name[RX_NAME_MAX];
	uint32_t ips[8];
	size_t n;
	if (in.len < 4)
		return EINVAL;
	if (client_cell_at(client, be32_get(in.p), name, ips, 8, &n) != AFS_OK)
		return EDOM;
	for (size_t i = 0; i < MIN(n, (size_t)8); i++)
		be32_put(blob + 4 * i, ips[i]);
	memcpy(blob + 32, name, strlen(name) + 1);
	return give(arena, blob, 32 + strlen(name) + 1, out);
}

static int drop_tokens(struct client *client, uid_t uid, const char *cell)
{
	afs_err err = client_token_drop(client, uid, cell);
	if (err == AFS_ENOENT)
		return cell ? EDOM : 0;
	return err ? errno_of(err) : 0;
}

static int drop_one(struct client *client, uid_t uid, struct xdr_bytes in)
{
	char cell[RX_NAME_MAX];
	size_t n = in.len ? strnlen((const char *)in.p, in.len) : 0;
	if (!n || n == in.len || n >= sizeof(cell))
		return EINVAL;
	memcpy(cell, in.p, n + 1);
	return drop_tokens(client, uid, cell);
}

int pioctl_run(struct pioctl *x)
{
	struct client *client = x->client;
	char cell[RX_NAME_MAX];
	x->out = (struct xdr_bytes){0};
	switch (x->cmd & 0xffff) {
	case PIOCTL_SETTOK: return set_old(client, x->who, x->in);
	case PIOCTL_SETTOK2: return set_new(client, x->who, x->in, x->arena);
	case PIOCTL_GETTOK: return get_old(client, x->who, x->in, x->arena, &x->out);
	case PIOCTL_GETTOK2: return get_new(client, x->who, x->in, x->arena, &x->out);
	case PIOCTL_UNLOG:
	case PIOCTL_UNPAG: return drop_tokens(client, x->who, NULL);
	case PIOCTL_UNLOG_CELL: return drop_one(client, x->who, x->in);
	case PIOCTL_CKCONN: {
		struct client_token t;
		uint8_t word[4];
		be32_put(word, find_token(client, x->who, false, 0, "", x->arena, &t) ? EACCES : 0);
		return give(x->arena, word, 4, &x->out);
	}
	case PIOCTL_GETCELL: return get_cell(client, x->in, x->arena, &x->out);
	case PIOCTL_GET_WS_CELL:
	case PIOCTL_GET_PRIMARY_CELL:
		if (local_cell(client, cell) != AFS_OK)
			return EIO;
		return give(x->arena, cell, strlen(cell) + 1, &x->out);
	default: return pioctl_more(x, x->cmd & 0xffff);
	}
}
