/* SPDX-License-Identifier: BSD-2-Clause
 * RXAFSCB calls of diagnostic tools: debug.c, offered by callback.c. */
#pragma once
#include "rx/rpc/rpc.h"

rpc_handler cm_on_get_lock, cm_on_get_ce, cm_on_get_ce64, cm_on_x_stats_version, cm_on_get_x_stats, cm_on_get_server_prefs,
	cm_on_get_cell_serv_db, cm_on_get_local_cell, cm_on_get_cache_config, cm_on_get_cell_by_num;
