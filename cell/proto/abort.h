/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Abort codes: the tables of abort.def, Rx's own codes and the security classes', both ways.  Inside
 * afscell there is afs_err; these run where a call leaves or enters the process. */
#pragma once
#include "cell/base/err.h"
#include "rx/core/core.h" /* enum rx_code: the transport's own */

#include <stdint.h>

enum {
	RXGEN_SS_MARSHAL = -452,
	RXGEN_SS_UNMARSHAL = -453,
	RXGEN_DECODE = -454,
	RXGEN_OPCODE = -455,
	UAE_BASE = 49733376,
	VL_ERROR_BASE = 363520,
	PR_ERROR_BASE = 267264,
	VOLS_ERROR_BASE = 1492325120,
	UBIK_ERROR_BASE = 5376,
	BOS_ERROR_BASE = 39424,
};

int32_t abort_of_fs(afs_err err);  /* errno-like errors in the UAE range */
int32_t abort_of_vl(afs_err err);
int32_t abort_of_pt(afs_err err);
int32_t abort_of_vol(afs_err err);
/* The FS code for a client that did not announce error translation: plain Linux errno. */
int32_t abort_plain_errno(int32_t code);

/* What a client makes of a code; an unknown one is AFS_EABORTED. */
afs_err err_of_fs(int32_t code);
afs_err err_of_vl(int32_t code);
afs_err err_of_pt(int32_t code);
afs_err err_of_vol(int32_t code);

/* The errno of this system for UAE index `n` (0 for a number outside the table), and back (-1). */
int uae_errno(unsigned n);
int uae_index(int eno);
