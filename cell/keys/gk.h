/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rxgk's keys and tokens.
 *
 * A struct gk is the set of keys in which this cell's tokens are sealed.  They are the servers' own, no
 * principal's: every server of the cell needs the file, nobody else.  It has the form of stock OpenAFS's
 * KeyFileExt, records of type 1.
 *
 * All functions may be called from any thread; none waits, but for the file.  Key bytes appear in no
 * message.
 *
 * Source: protocol rx-security.md §6, §11.6-11.7. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/mem.h"
#include "rx/sec/rxgk.h"

struct gk;
struct gk_config {
	const char *path;  /* made with one random aes256 key when missing; NULL: no keys yet, gk_add() */
	bool allow_dotted; /* as keys_config */
};
/* AFS_ECORRUPT, AFS_EACCESS, AFS_EIO, AFS_ENOMEM; a sentence in `why`. */
afs_err gk_open(const struct gk_config *config, struct gk **out, struct buf *why);
void gk_close(struct gk *gk);
DEFINE_CLEANUP_PTR(gk, struct gk, gk_close)
/* AFS_EWEAKKEY: no encryption type of rxgk's; AFS_EINVAL: length; AFS_EEXIST; AFS_ENOSPC: 64 keys. */
afs_err gk_add(struct gk *gk, int32_t kvno, int32_t etype, const uint8_t *key, size_t len);

/* rxgk_read_token, ctx being a struct gk: index 4 has OpenAFS's layout, 6 the other.  A token without an
 * identity is the cell's own (name afs, no instance, no cell).  AFS_EBADTICKET, AFS_EUNKNOWNKEY. */
afs_err gk_read_token(
	void *gk, uint8_t index, const uint8_t *token, size_t len, wall_ns now, struct rxgk_ticket *out);

struct gk_token {
	struct rxgk_terms terms;
	uint8_t *token; /* heap */
	size_t len;
};
void gk_token_fini(struct gk_token *t); /* also wipes it */
static inline void gk_token_cleanup(struct gk_token *t) { gk_token_fini(t); }

/* A token with these terms for a GSS exported name; no name: the cell itself.  Sealed in the newest key.
 * AFS_ENOENT: there is none. */
afs_err gk_make_token(struct gk *gk, uint8_t index, const struct rxgk_terms *terms, const uint8_t *name,
	size_t name_len, const char *display, wall_ns now, struct gk_token *out);
/* One that both tokens are needed for, with the first one's identity; `combined` tells that key's terms.
 * Its encryption type is the first token's.  Errors as of reading, and AFS_EEXPIRED. */
afs_err gk_combine(struct gk *gk, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len,
	enum rx_sec_level level, wall_ns now, struct gk_token *out);
