/* SPDX-License-Identifier: BSD-2-Clause
 * Ends a pass over struct rows. */
#undef XDR_STRUCT
#undef XDR_FIELD
#undef XDR_CUSTOM
#undef XDR_STR
#undef XDR_OPAQUE
#undef XDR_ARRAY
#undef XDR_FIXED
#undef XDR_CHARS
#undef XDR_RAW
#undef XDR_END
