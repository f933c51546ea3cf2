/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The client of rxgk's negotiation: a Kerberos ticket becomes a token, through GSS with a database server.
 *
 * The server proves itself too (mutual authentication), and its answer is sealed and carries a checksum over what
 * was asked, so that nobody on the way can weaken the choice of encryption.
 *
 * Source: protocol rx-security.md §11.7; RFC 4402. */
#pragma once
#include "cell/admin/inside.h"

struct negotiate_want {
	struct keys_aklog ticket;   /* whose, and for which cell */
	enum rx_sec_level level;    /* the only one that is asked for */
	struct rpc_port *port;      /* to ask from */
	const uint32_t *ips;        /* database servers in order, host order */
	size_t ip_count;
	uint16_t server_port;       /* of their service */
};
/* Adds an rxgk token to *out, and the client's names.  Waits for KDC and servers; `why` gets a sentence.
 * AFS_ENOSERVICE: the cell offers no rxgk (its realm knows no such service, or its servers do not);
 * AFS_ENOTICKETS, AFS_EEXPIRED, AFS_ENOKDC, AFS_ESKEW: as keys_aklog; AFS_EDEAD: no server answers;
 * AFS_EBADTICKET: the server refuses the ticket, or did not prove itself; AFS_ESEALED: the answer was
 * tampered with; AFS_EDECODE, AFS_ELEVEL: it makes no sense, or is less than was asked. */
afs_err negotiate(const struct negotiate_want *want, struct keys_token *out, struct buf *why);

/* Tokens of the class that is wanted.  ADMIN_ANY: rxkad's, which stock tools can use, and rxgk's where the cell offers
 * it and a server answers; where not, `note` says why.  An answer that proves false is an error all the same. */
afs_err negotiate_class(const struct negotiate_want *want, enum admin_class class, struct keys_token *out, struct buf *note, struct buf *why);

/* The judgement of one answer, for tests: the unsealed ClientInfo, against what was asked.  `terms` lacks K0.
 * AFS_EDECODE, AFS_ELEVEL, AFS_EWEAKKEY, AFS_ETICKETLEN, AFS_EEXPIRED. */
struct gk_start;
struct gk_client_info;
afs_err negotiate_judge(const struct gk_start *asked, const struct gk_client_info *info, wall_ns now, struct rxgk_terms *terms);
