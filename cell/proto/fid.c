/* SPDX-License-Identifier: BSD-2-Clause
 * Codecs of fid.def. */
#include "cell/proto/fid.h"

#define XDR_ROWS "cell/proto/fid.def"
#include "rx/xdr/codec_pass.h"
