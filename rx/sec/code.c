/* SPDX-License-Identifier: BSD-2-Clause
 * rxkad's error table, read both ways: the first row of an error is its code.
 * Source: protocol rx-security.md §8. */
#include "rx/sec/security.h"

#include "cell/base/mem.h"

enum { RXKAD_BASE = 19270400 };

static const struct {
	afs_err err;
	int32_t code;
} rows[] = {
	{AFS_ESECPROTO, RXKAD_BASE + 0},                                  /* RXKADINCONSISTENCY */
	{AFS_EPACKETSHORT, RXKAD_BASE + 1}, {AFS_ELEVEL, RXKAD_BASE + 2}, /* RXKADLEVELFAIL */
	{AFS_ETICKETLEN, RXKAD_BASE + 3}, {AFS_EOUTOFSEQ, RXKAD_BASE + 4},
	{AFS_ENOAUTH, RXKAD_BASE + 5}, {AFS_EBADTICKET, RXKAD_BASE + 7},
	{AFS_EBADTICKET, RXKAD_BASE + 6}, /* RXKADBADKEY: the session key is the ticket's */
	{AFS_EUNKNOWNKEY, RXKAD_BASE + 8}, {AFS_EEXPIRED, RXKAD_BASE + 9},
	{AFS_ESEALED, RXKAD_BASE + 10},                                 /* RXKADSEALEDINCON */
	{AFS_EDATALEN, RXKAD_BASE + 11}, {AFS_ELEVEL, RXKAD_BASE + 12}, /* RXKADILLEGALLEVEL */
};

int32_t rx_sec_code(afs_err err)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].err == err)
			return rows[i].code;
	return 0;
}

afs_err rx_sec_err(int32_t code)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].code == code)
			return rows[i].err;
	return AFS_OK;
}
