/* SPDX-License-Identifier: BSD-2-Clause
 * What is answered by path; this folder's own. */
#pragma once
#include "webui/http.h"

enum MHD_Result api_answer(struct web_request *rq);
