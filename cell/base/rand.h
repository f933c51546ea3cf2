/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Random bytes from the system, for keys, nonces, epochs and ids.  Never fails: a system without
 * randomness stops the process with a message. */
#pragma once
#include <stddef.h>
#include <stdint.h>

void rand_bytes(void *out, size_t n);
uint32_t rand_u32(void);
uint64_t rand_u64(void);
