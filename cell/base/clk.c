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
