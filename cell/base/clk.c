/* SPDX-License-Identifier: BSD-2-Clause
 * The only place that asks the system for the time. */
#include "cell/base/clk.h"

#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

mono_ns clk_mono(void) { return read_clock(CLOCK_MONOTONIC); }
wall_ns clk_wall(void) { return read_clock(CLOCK_REALTIME); }

uint32_t clk_wire_sec(wall_ns t)
{
	if (t < 0)
		return 0;
	int64_t sec = t / NS_PER_SEC;
	return sec > (int64_t)UINT32_MAX ? UINT32_MAX : (uint32_t)sec;
}
