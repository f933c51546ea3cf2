/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The server: libmicrohttpd with a thread for each connection, since commands wait; what a request must have
 * before api.c sees it; and what every answer has.  Connections, headers (32 KiB), bodies and idle time
 * are bounded. */
#include "webui/http.h"

#include "cell/base/log.h"
#include "cell/base/text.h"
#include "webui/api.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- answers -------------------------------------------------------------------------------- */

void web_headers(struct MHD_Response *r, bool secure)
{
	static const char *const all[][2] = {
		{"Content-Security-Policy",
			"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
			"form-action 'none'; frame-ancestors 'none'"},
		{"X-Content-Type-Options", "nosniff"}, {"X-Frame-Options", "DENY"}, {"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Opener-Policy", "same-origin"}, {"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cache-Control", "no-store"}};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		MHD_add_response_header(r, all[i][0], all[i][1]);
	if (secure)
		MHD_add_response_header(r, "Strict-Transport-Security", "max-age=31536000");
}

static enum MHD_Result send_copy(struct web_request *rq, unsigned status, const char *type, const void *data, size_t n, const char *cookie)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(n, (void *)(uintptr_t)data, MHD_RESPMEM_MUST_COPY);
	if (!r)
		return MHD_NO;
	web_headers(r, rq->web->secure);
	MHD_add_response_header(r, "Content-Type", type);
	if (cookie)
		MHD_add_response_header(r, "Set-Cookie", cookie);
	if (status == 405)
		MHD_add_response_header(r, "Allow", "GET, HEAD, POST");
	if (status == 429)
		MHD_add_response_header(r, "Retry-After", "60");
	enum MHD_Result rc = MHD_queue_response(rq->mhd, status, r);
	MHD_destroy_response(r);
	if (status >= 400)
		atomic_fetch_add(&rq->web->refused, 1);
	return rc;
}

enum MHD_Result web_bytes(struct web_request *rq, unsigned status, const char *type, const void *data, size_t n)
{
	return send_copy(rq, status, type, data, n, NULL);
}

enum MHD_Result web_json(struct web_request *rq, unsigned status, json_t *value, const char *cookie)
{
	char *s = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	json_decref(value);
	if (!s)
		return MHD_NO;
	enum MHD_Result rc = send_copy(rq, status, "application/json", s, strlen(s), cookie);
	free(s);
	return rc;
}

enum MHD_Result web_refuse(struct web_request *rq, unsigned status, const char *name, const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_t *t = json_string(text);
	return web_json(rq, status, json_pack("{s:s, s:o}", "error", name, "text", t ? t : json_string("the reason is no readable text")), NULL);
}

/* --- requests ------------------------------------------------------------------------------- */

static const char *header(const struct web_request *rq, const char *name)
{
	return MHD_lookup_connection_value(rq->mhd, MHD_HEADER_KIND, name);
}

static bool host_is_ours(const struct web_request *rq)
{
	const char *host = header(rq, "Host");
	for (size_t i = 0; host && i < ARRAY_SIZE(rq->web->hosts); i++)
		if (*rq->web->hosts[i] && strcasecmp(host, rq->web->hosts[i]) == 0)
			return true;
	return false;
}

static bool origin_is_ours(const struct web_request *rq)
{
	const char *origin = header(rq, "Origin"), *host = header(rq, "Host"), *scheme = rq->web->secure ? "https://" : "http://";
	size_t n = strlen(scheme);
	return origin && host && strncasecmp(origin, scheme, n) == 0 && strcasecmp(origin + n, host) == 0;
}

static void find_session(struct web_request *rq)
{
	const char *id = MHD_lookup_connection_value(rq->mhd, MHD_COOKIE_KIND, rq->web->cookie);
	if (id && strlen(id) == SESSION_ID_LEN)
		rq->session = sessions_hold(rq->web->sessions, id, clk_mono());
}

static void find_peer(struct web_request *rq)
{
	const union MHD_ConnectionInfo *ci = MHD_get_connection_info(rq->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct sockaddr_in sin = {};
	if (ci && ci->client_addr && ci->client_addr->sa_family == AF_INET)
		memcpy(&sin, ci->client_addr, sizeof(sin));
	uint32_t ip = ntohl(sin.sin_addr.s_addr);
	snprintf(rq->from, sizeof(rq->from), "%s", IPV4(ip));
	rq->here = ip >> 24 == 127;
}

static enum MHD_Result judge(struct web_request *rq)
{
	struct web *w = rq->web;
	rq->post = strcmp(rq->method, "POST") == 0;
	if (!rq->post && strcmp(rq->method, "GET") != 0 && strcmp(rq->method, "HEAD") != 0)
		return web_refuse(rq, 405, "NOTSUP", "only GET, HEAD and POST are understood");
	if (!host_is_ours(rq))
		return web_refuse(rq, 421, "INVAL", "this console is at %s; for another name, set console.host", w->url);
	if (rq->too_big)
		return web_refuse(rq, 413, "FBIG", "a request holds at most %d bytes", WEB_BODY_MAX);
	find_peer(rq);
	find_session(rq);
	if (rq->post && !origin_is_ours(rq))
		return web_refuse(rq, 403, "ACCESS", "changes are only taken from the console's own pages (Origin)");
	const char *word = header(rq, "X-CSRF-Token");
	if (rq->post && strcmp(rq->path, "/api/v1/session") != 0) {
		if (!rq->session)
			return web_refuse(rq, 401, "NOAUTH", "sign in first");
		if (!word || !session_same(rq->session->csrf, word))
			return web_refuse(rq, 403, "ACCESS", "the request lacks this session's word (X-CSRF-Token); load the page again");
	}
	return api_answer(rq);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *mhd, const char *path, const char *method, const char *version,
	const char *data, size_t *n, void **place)
{
	(void)version;
	struct web_request *rq = *place;
	if (!rq) {
		rq = mem_new(struct web_request);
		if (!rq)
			return MHD_NO;
		*rq = (struct web_request){.web = ctx, .mhd = mhd, .path = path, .method = method};
		atomic_fetch_add(&rq->web->requests, 1);
		*place = rq;
		return MHD_YES;
	}
	if (*n) {
		rq->too_big = rq->too_big || rq->body.len + *n > WEB_BODY_MAX;
		if (!rq->too_big)
			buf_put(&rq->body, data, *n);
		else if ((rq->dropped += *n) > 4 * (size_t)WEB_BODY_MAX)
			return MHD_NO; /* he goes on sending what nobody reads */
		*n = 0;
		return rq->body.err == AFS_OK ? MHD_YES : MHD_NO;
	}
	return judge(rq);
}

static void on_done(void *ctx, struct MHD_Connection *mhd, void **place, enum MHD_RequestTerminationCode how)
{
	(void)ctx, (void)mhd, (void)how;
	struct web_request *rq = *place;
	if (!rq)
		return;
	sessions_let(rq->web->sessions, rq->session);
	if (rq->body.data)
		explicit_bzero(rq->body.data, rq->body.len); /* may be a password */
	buf_fini(&rq->body);
	mem_free(rq);
	*place = NULL;
}

/* --- the server ----------------------------------------------------------------------------- */

static void set_names(struct web *w)
{
	const struct web_config *c = &w->config;
	w->secure = c->behind_proxy || c->cert;
	snprintf(w->hosts[0], sizeof(w->hosts[0]), "%s:%u", IPV4(c->ip), c->port);
	if (c->ip >> 24 == 127)
		snprintf(w->hosts[1], sizeof(w->hosts[1]), "localhost:%u", c->port);
	snprintf(w->hosts[2], sizeof(w->hosts[2]), "%s", c->host ? c->host : "");
	snprintf(w->url, sizeof(w->url), "%s://%.280s", w->secure ? "https" : "http", *w->hosts[2] ? w->hosts[2] : w->hosts[0]);
	/* Cookies do not know ports: two cells of one machine must not share one. */
	snprintf(w->cookie, sizeof(w->cookie), "afscell_%u", c->port);
}

/* Paths are compared as they came: no row has a letter that needs %. */
static size_t as_it_came(void *ctx, struct MHD_Connection *mhd, char *text) { return (void)ctx, (void)mhd, strlen(text); }

[[gnu::format(printf, 2, 0)]] static void on_trouble(void *ctx, const char *fmt, va_list ap)
{
	(void)ctx;
	char text[256];
	vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = '\0';
	log_debug("web.trouble text=\"%s\"", LOG_SAFE(text));
}

static afs_err start(struct web *w)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(w->config.port), .sin_addr.s_addr = htonl(w->config.ip)};
	unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ERROR_LOG
		| (w->config.cert ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)w->config.cert},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)w->config.key}, {MHD_OPTION_END, 0, NULL}};
	errno = 0;
	w->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, w, MHD_OPTION_EXTERNAL_LOGGER, on_trouble, w, MHD_OPTION_SOCK_ADDR, &sin,
		MHD_OPTION_UNESCAPE_CALLBACK, as_it_came, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_done, w, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(32 << 10),
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)WEB_CONNS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)WEB_CONNS_PER_IP,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)WEB_TIMEOUT_S, MHD_OPTION_THREAD_STACK_SIZE, (size_t)(512 << 10),
		MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_ARRAY, w->config.cert ? tls : &tls[2], MHD_OPTION_END);
	if (w->daemon)
		return AFS_OK;
	return errno == EADDRINUSE ? AFS_EADDRINUSE : w->config.cert && !errno ? AFS_ECONFIG : errno ? afs_err_from_errno(errno) : AFS_EIO;
}

afs_err web_open(const struct web_config *config, const struct web_ports *ports, struct web **out)
{
	struct web *w = mem_new(struct web);
	if (!w)
		return AFS_ENOMEM;
	mtx_init(&w->lock, RANK_NONE);
	cond_init(&w->stop);
	w->ports = *ports;
	w->config = *config;
	w->config.host = mem_strdup(config->host ? config->host : "");
	w->config.cert = mem_strdup(config->cert);
	w->config.key = mem_strdup(config->key);
	w->sessions = sessions_new(ports);
	bool whole = w->config.host && w->sessions && (!config->cert || (w->config.cert && w->config.key));
	afs_err err = AFS_ENOMEM;
	if (whole) {
		set_names(w);
		err = start(w);
	}
	if (err != AFS_OK)
		web_close(w);
	else
		*out = w;
	return err;
}

void web_close(struct web *w)
{
	if (!w)
		return;
	mtx_lock(&w->lock);
	w->stopping = true;
	cond_broadcast(&w->stop);
	mtx_unlock(&w->lock);
	if (w->daemon)
		MHD_stop_daemon(w->daemon);
	sessions_free(w->sessions);
	if (w->config.key)
		explicit_bzero((void *)(uintptr_t)w->config.key, strlen(w->config.key));
	mem_free(w->config.host);
	mem_free(w->config.cert);
	mem_free(w->config.key);
	cond_fini(&w->stop);
	mtx_fini(&w->lock);
	mem_free(w);
}

const char *web_url(const struct web *w) { return w->url; }

char *web_link(struct web *w)
{
	char id[SESSION_ID_LEN + 1];
	sessions_link(w->sessions, id, clk_mono());
	char *url = mem_printf("%s/#link/%s", w->url, id); /* behind #: it stands in no log and no Referer */
	explicit_bzero(id, sizeof(id));
	return url;
}
