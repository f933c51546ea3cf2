/* SPDX-License-Identifier: BSD-2-Clause
 * The classes' error tables, read both ways: the first row of an error is its code.
 * Source: protocol rx-security.md §8, §11.9. */
#include "rx/sec/security.h"

#include "cell/base/mem.h"

enum { RXKAD_BASE = 19270400, RXGK_BASE = 1233242880 };

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

/* OpenAFS numbers the same meanings otherwise than the others do. */
static const struct {
	afs_err err;
	uint8_t openafs, yfs;
} gk_rows[] = {
	{AFS_ESECPROTO, 0, 0},   /* INCONSISTENCY */
	{AFS_EPACKETSHORT, 1, 1},
	{AFS_EOUTOFSEQ, 2, 2},   /* BADCHALLENGE */
	{AFS_EWEAKKEY, 3, 9},    /* BADETYPE, UNSUPPORTED */
	{AFS_ELEVEL, 4, 6},      /* BADLEVEL */
	{AFS_EUNKNOWNKEY, 5, 7}, /* BADKEYNO */
	{AFS_EEXPIRED, 6, 5},    {AFS_ENOAUTH, 7, 4},   {AFS_EBADTICKET, 8, 4}, /* BAD_TOKEN, NOTAUTH */
	{AFS_ETICKETLEN, 8, 1},  {AFS_ESEALED, 9, 3},   {AFS_EDATALEN, 10, 3},
};

int32_t rx_sec_code(afs_err err)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].err == err)
			return rows[i].code;
	return 0;
}

int32_t rx_gk_code(uint8_t index, afs_err err)
{
	for (size_t i = 0; i < ARRAY_SIZE(gk_rows); i++)
		if (gk_rows[i].err == err)
			return RXGK_BASE + (index == RX_SEC_RXGK ? gk_rows[i].openafs : gk_rows[i].yfs);
	return 0;
}

afs_err rx_sec_err(int32_t code)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].code == code)
			return rows[i].err;
	for (size_t i = 0; i < ARRAY_SIZE(gk_rows); i++)
		if (RXGK_BASE + gk_rows[i].yfs == code)
			return gk_rows[i].err;
	return AFS_OK;
}
