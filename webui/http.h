/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A request as api.c sees it, once http.c has judged Host, Origin, session, word and length; this folder's own. */
#pragma once
#include "cell/base/list.h"
#include "cell/base/mtx.h"
#include "webui/session.h"

#include <microhttpd.h>
#include <stdatomic.h>

enum {
	WEB_BODY_MAX = 256 << 10, WEB_CONNS_MAX = 256, WEB_CONNS_PER_IP = 160, WEB_FEEDS_MAX = 128,
	WEB_TIMEOUT_S = 15, WEB_FEED_S = 2, WEB_TEXT_MAX = 512 << 10,
};

struct web {
	struct web_config config;
	struct web_ports ports;
	char url[300], hosts[3][300], cookie[32];
	bool secure; /* browsers come by https */
	struct MHD_Daemon *daemon;
	struct sessions *sessions;
	atomic_uint_fast64_t requests, refused, sign_ins, failed_sign_ins, runs, failed_runs;
	atomic_uint feeds;
	atomic_bool stopping;
	struct mtx lock;
	struct cond stop;
};

struct web_request {
	struct web *web;
	struct MHD_Connection *mhd;
	const char *method, *path;
	bool post;
	bool too_big;
	size_t dropped; /* bytes of a body that is too big */
	struct session *session; /* held; NULL: nobody */
	char from[48];
	bool here; /* the peer is this machine */
	struct buf body;
};

/* Queue an answer.  Take `value`. */
enum MHD_Result web_json(struct web_request *rq, unsigned status, json_t *value, const char *cookie);
enum MHD_Result web_bytes(struct web_request *rq, unsigned status, const char *type, const void *data, size_t n);
/* {"error": NAME, "text": ...} */
[[gnu::format(printf, 4, 5)]] enum MHD_Result web_refuse(struct web_request *rq, unsigned status, const char *name, const char *fmt, ...);
/* Sets what every answer has. */
void web_headers(struct MHD_Response *r, bool secure);
void web_metrics(struct web *w, struct buf *out); /* metrics.c */
