/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Time.  Monotonic for every timer, wall time for what people and the wire see; both in ns,
 * signed 64 bit.  Only clk.c asks the system: everything below the edge is handed `now`. */
#pragma once
#include <stdint.h>

typedef int64_t mono_ns; /* since an arbitrary start; never steps */
typedef int64_t wall_ns; /* since 1970-01-01 UTC */

#define NS_PER_SEC INT64_C(1000000000)
#define SEC(n) ((int64_t)(n) * NS_PER_SEC)
#define MSEC(n) ((int64_t)(n) * 1000000)
#define USEC(n) ((int64_t)(n) * 1000)
#define MONO_NEVER INT64_MAX

mono_ns clk_mono(void);
wall_ns clk_wall(void);
/* Seconds for a 32-bit wire field, clamped to it (design D12). */
static inline uint32_t clk_wire_sec(wall_ns t)
{
	if (t < 0)
		return 0;
	int64_t sec = t / NS_PER_SEC;
	return sec > (int64_t)UINT32_MAX ? UINT32_MAX : (uint32_t)sec;
}
