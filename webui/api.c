/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What is answered by path: rows of `routes`, the embedded pages, and the commands.
 *
 * A command runs as the person of the session.  Of the table a browser is offered less than a shell: nothing
 * that names a file or directory of this machine, nothing that would borrow the cell's key (-localauth), and not
 * the suites that act through the machine's cache manager, which knows this process and not the person. */
#include "webui/api.h"

#include "webui/assets.h"
#include "webui/page.h"

#include <stdio.h>
#include <string.h>

DEFINE_CLEANUP_PTR(json, json_t, json_decref)

static bool is_administrator(const struct web_request *rq)
{
	const struct web_ports *p = &rq->web->ports;
	return rq->session && p->administrator(p->ctx, rq->session->who);
}

static const char *person(const struct web_request *rq) { return rq->web->ports.name(rq->session->who); }

static void note(struct web_request *rq, const char *name, const char *what, const char *object, afs_err err)
{
	CLEANUP(str) char *who = mem_printf("%s (console, %s)", name, rq->from);
	rq->web->ports.audit(rq->web->ports.ctx, who ? who : name, what, object, err);
}

static json_t *body(const struct web_request *rq)
{
	json_t *v = json_loadb(rq->body.data ? rq->body.data : "", rq->body.len, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(v))
		return v;
	json_decref(v);
	return NULL;
}

/* --- sessions ------------------------------------------------------------------------------- */

static json_t *session_json(const struct web_request *rq)
{
	return json_pack("{s:s, s:b, s:s}", "name", person(rq), "administrator", (int)is_administrator(rq), "csrf", rq->session->csrf);
}

static enum MHD_Result send_cookie(struct web_request *rq, const char *id, json_t *value)
{
	char cookie[160];
	snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s", rq->web->cookie, id, rq->web->secure ? "; Secure" : "",
		*id ? "" : "; Max-Age=0");
	return web_json(rq, 200, value, cookie);
}

static enum MHD_Result signed_in(struct web_request *rq, struct web_identity *who)
{
	sessions_let(rq->web->sessions, rq->session);
	rq->session = sessions_begin(rq->web->sessions, who, rq->from, clk_mono());
	if (!rq->session)
		return web_refuse(rq, 507, "NOMEM", "out of memory");
	atomic_fetch_add(&rq->web->sign_ins, 1);
	note(rq, person(rq), "console.sign_in", rq->web->url, AFS_OK);
	return send_cookie(rq, rq->session->id, session_json(rq));
}

static enum MHD_Result sign_in(struct web_request *rq)
{
	struct web *w = rq->web;
	CLEANUP(json) json_t *in = body(rq);
	const char *user = json_string_value(json_object_get(in, "user")), *link = json_string_value(json_object_get(in, "link"));
	const char *password = json_string_value(json_object_get(in, "password"));
	struct web_identity *who = NULL;
	CLEANUP(buf) struct buf why = {};
	if (!link && (!user || !password || !*user || strlen(user) > 128 || strlen(password) > 1024))
		return web_refuse(rq, 400, "INVAL", "expected a user and a password, or a link");
	if (!sessions_may_try(w->sessions, link ? "" : user, rq->from, clk_mono()))
		return web_refuse(rq, 429, "OVERLOAD", "too many attempts; wait a minute and try again");
	afs_err err;
	if (link) {
		err = sessions_link_use(w->sessions, link, clk_mono()) ? AFS_OK : AFS_EBADPASSWORD;
		who = err == AFS_OK ? w->ports.owner(w->ports.ctx) : NULL;
		if (err == AFS_OK && !who)
			return web_refuse(rq, 507, "NOMEM", "out of memory");
	} else {
		err = w->ports.sign_in(w->ports.ctx, user, password, &who, &why);
	}
	if (err == AFS_OK)
		return signed_in(rq, who);
	atomic_fetch_add(&w->failed_sign_ins, 1);
	sessions_failed(w->sessions, link ? "" : user, rq->from, clk_mono());
	note(rq, link ? "somebody with a link" : user, "console.sign_in", w->url, err);
	if (link)
		return web_refuse(rq, 401, "NOAUTH", "this link was used already, or is too old; \"afscell console link\" gives a new one");
	if (err == AFS_EBADPASSWORD || err == AFS_ENOENT) /* who exists is not told */
		return web_refuse(rq, 401, "BADPASSWORD", "no such user, or a wrong password");
	return web_refuse(rq, (unsigned)afs_err_http(err), afs_err_name(err), "%s", why.len ? why.data : afs_err_text(err));
}

static enum MHD_Result get_session(struct web_request *rq) { return web_json(rq, 200, session_json(rq), NULL); }

static enum MHD_Result end(struct web_request *rq)
{
	note(rq, person(rq), "console.sign_out", "this session", AFS_OK);
	sessions_end(rq->web->sessions, rq->session);
	return send_cookie(rq, "", json_object());
}

static enum MHD_Result end_all(struct web_request *rq)
{
	note(rq, person(rq), "console.sign_out", "all sessions", AFS_OK);
	sessions_end_all(rq->web->sessions, person(rq));
	return send_cookie(rq, "", json_object());
}

/* --- status --------------------------------------------------------------------------------- */

static enum MHD_Result status(struct web_request *rq) { return web_json(rq, 200, rq->web->ports.status(rq->web->ports.ctx), NULL); }

static enum MHD_Result healthz(struct web_request *rq) { return web_bytes(rq, 200, "text/plain", "ok\n", 3); }

static enum MHD_Result readyz(struct web_request *rq)
{
	CLEANUP(json) json_t *st = rq->web->ports.status(rq->web->ports.ctx);
	CLEANUP(buf) struct buf out = {};
	size_t i;
	json_t *r;
	bool ready = true;
	json_array_foreach(json_object_get(st, "roles"), i, r)
	{
		const char *state = json_string_value(json_object_get(r, "state"));
		bool fine = state && (strcmp(state, "running") == 0 || strcmp(state, "off") == 0);
		ready = ready && fine;
		if (!fine)
			buf_printf(&out, "%s is %s\n", json_string_value(json_object_get(r, "name")), state ? state : "unknown");
	}
	if (ready)
		buf_puts(&out, "ready\n");
	return out.err ? MHD_NO : web_bytes(rq, ready ? 200 : 503, "text/plain", out.data, out.len);
}

static enum MHD_Result metrics(struct web_request *rq)
{
	CLEANUP(buf) struct buf out = {};
	if (!(rq->here && !rq->web->config.behind_proxy) && !is_administrator(rq))
		return web_refuse(rq, 403, "ACCESS", "metrics are for this machine, and for administrators who signed in");
	web_metrics(rq->web, &out);
	return out.err ? MHD_NO : web_bytes(rq, 200, "text/plain; version=0.0.4", out.data, out.len);
}

struct feed {
	struct web *web;
	struct session *session;
	struct buf left; /* not sent yet */
	size_t at;
	bool began;
};

static ssize_t feed_read(void *ctx, uint64_t pos, char *out, size_t max)
{
	(void)pos;
	struct feed *f = ctx;
	struct web *w = f->web;
	if (f->at == f->left.len) {
		mtx_lock(&w->lock);
		mono_ns until = clk_mono() + SEC(WEB_FEED_S);
		while (f->began && !w->stopping && cond_wait_until(&w->stop, &w->lock, until))
			;
		mtx_unlock(&w->lock);
		if (w->stopping || !sessions_alive(w->sessions, f->session, clk_mono()))
			return MHD_CONTENT_READER_END_OF_STREAM;
		json_t *st = w->ports.status(w->ports.ctx);
		char *text = st ? json_dumps(st, JSON_COMPACT) : NULL;
		json_decref(st);
		f->left.len = f->at = 0;
		f->began = true;
		buf_printf(&f->left, "event: status\ndata: %s\n\n", text ? text : "{}");
		free(text);
		if (f->left.err)
			return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	size_t n = MIN(max, f->left.len - f->at);
	memcpy(out, f->left.data + f->at, n);
	f->at += n;
	return (ssize_t)n;
}

static void feed_free(void *ctx)
{
	struct feed *f = ctx;
	atomic_fetch_sub(&f->web->feeds, 1);
	sessions_let(f->web->sessions, f->session);
	buf_fini(&f->left);
	mem_free(f);
}

static enum MHD_Result live(struct web_request *rq)
{
	struct web *w = rq->web;
	if (atomic_fetch_add(&w->feeds, 1) >= WEB_FEEDS_MAX) {
		atomic_fetch_sub(&w->feeds, 1);
		return web_refuse(rq, 503, "OVERLOAD", "too many live feeds are open; close a window");
	}
	struct feed *f = mem_new(struct feed);
	struct MHD_Response *r = f ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 << 10, feed_read, f, feed_free) : NULL;
	if (!r) {
		atomic_fetch_sub(&w->feeds, 1);
		mem_free(f);
		return MHD_NO;
	}
	*f = (struct feed){.web = w, .session = TAKE(rq->session)}; /* the feed holds it now */
	web_headers(r, w->secure);
	MHD_add_response_header(r, "Content-Type", "text/event-stream");
	MHD_add_response_header(r, "X-Accel-Buffering", "no");
	enum MHD_Result rc = MHD_queue_response(rq->mhd, 200, r);
	MHD_destroy_response(r);
	return rc;
}

/* --- commands ------------------------------------------------------------------------------- */

static bool one_of(const char *s, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(s, *list) == 0)
			return true;
	return false;
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}

static bool offered(const json_t *command, bool administrator)
{
	static const char *const all[] = {"vos", "pts", NULL}, *const administrators[] = {"vos", "pts", "bos", "user", "group", "key", NULL};
	static const char *const alone[] = {"status", "doctor", "check", "version", NULL};
	const char *suite = text(command, "suite");
	return *suite ? one_of(suite, administrator ? administrators : all) : administrator && one_of(text(command, "name"), alone);
}

static bool argument_offered(const json_t *arg)
{
	static const char *const places[] = {"FILE", "DIR", "DIR/FILE", NULL};
	static const char *const names[] = {"localauth", "config", "cell", "noresolve", "encrypt", "noauth", NULL};
	return !one_of(text(arg, "what"), places) && !one_of(text(arg, "name"), names);
}

/* The rows that this person is offered. */
static json_t *commands_for(struct web_request *rq)
{
	bool administrator = is_administrator(rq);
	json_t *list = rq->web->ports.commands(rq->web->ports.ctx);
	for (size_t i = json_array_size(list); i-- > 0;) {
		json_t *c = json_array_get(list, i), *args = json_object_get(c, "args");
		if (!offered(c, administrator)) {
			json_array_remove(list, i);
			continue;
		}
		for (size_t k = json_array_size(args); k-- > 0;)
			if (!argument_offered(json_array_get(args, k)))
				json_array_remove(args, k);
	}
	return list;
}

static enum MHD_Result commands(struct web_request *rq) { return web_json(rq, 200, commands_for(rq), NULL); }

static enum MHD_Result ran(struct web_request *rq, int rc, json_t *result, const char *said)
{
	if (rc == 0)
		return web_json(rq, 200, json_pack("{s:o, s:s?}", "result", result ? result : json_null(), "text", said), NULL);
	json_decref(result);
	return web_refuse(rq, rc == 2 ? 400 : 409, rc == 2 ? "INVAL" : "FAILED", "%s", said ? said : "it failed");
}

/* The row of `list` that is written "vos create" or, with `between` '/', "vos/create". */
static json_t *command_of(const json_t *list, const char *name, char between)
{
	json_t *c;
	size_t i;
	json_array_foreach(list, i, c)
	{
		CLEANUP(str) char *its = mem_printf("%s%.1s%s", text(c, "suite"), *text(c, "suite") ? &between : "", text(c, "name"));
		if (its && strcmp(its, name) == 0)
			return c;
	}
	return NULL;
}

static bool arguments_known(const json_t *command, const json_t *args)
{
	const char *key;
	json_t *v, *arg;
	size_t i;
	json_object_foreach((json_t *)(uintptr_t)args, key, v)
	{
		bool known = false;
		json_array_foreach(json_object_get(command, "args"), i, arg) known = known || strcmp(text(arg, "name"), key) == 0;
		if (!known)
			return false;
	}
	return true;
}

static enum MHD_Result run_found(struct web_request *rq, const json_t *found, const json_t *args, const json_t *how)
{
	struct web *w = rq->web;
	CLEANUP(str) char *command = NULL, *said = NULL;
	if (!found)
		return web_refuse(rq, 404, "NOENT", "there is no such command for you here");
	if (!args)
		return web_refuse(rq, 400, "INVAL", "the arguments are to be one JSON object");
	if (!arguments_known(found, args))
		return web_refuse(rq, 400, "INVAL", "this command takes no argument of that name here");
	command = mem_printf("%s%s%s", text(found, "suite"), *text(found, "suite") ? " " : "", text(found, "name"));
	if (!command)
		return MHD_NO;
	json_t *result = NULL;
	int rc = w->ports.run(w->ports.ctx, command, args, rq->session->who, &result, &said);
	atomic_fetch_add(&w->runs, 1);
	if (rc)
		atomic_fetch_add(&w->failed_runs, 1);
	if (json_is_true(json_object_get(found, "changes"))) {
		char *object = json_dumps(args, JSON_COMPACT);
		note(rq, person(rq), command, object ? object : "", rc == 0 ? AFS_OK : rc == 2 ? AFS_EINVAL : AFS_EABORTED);
		free(object);
	}
	if (rc == 0 && how) {
		json_t *page = json_is_array(result) ? web_page(result, how) : NULL;
		json_decref(result);
		return page ? web_json(rq, 200, page, NULL) : web_refuse(rq, 409, "FAILED", "this command gives no list");
	}
	return ran(rq, rc, result, said);
}

static enum MHD_Result run(struct web_request *rq, const char *path)
{
	CLEANUP(json) json_t *list = commands_for(rq), *args = body(rq);
	return run_found(rq, command_of(list, path, '/'), args, NULL);
}

/* A page of what a command lists. */
static enum MHD_Result list(struct web_request *rq)
{
	CLEANUP(json) json_t *commands = commands_for(rq), *in = body(rq);
	const char *name = json_string_value(json_object_get(in, "command"));
	const json_t *found = name ? command_of(commands, name, ' ') : NULL;
	if (found && json_is_true(json_object_get(found, "changes")))
		return web_refuse(rq, 400, "INVAL", "this command changes something; it is run, not listed");
	return run_found(rq, found, json_object_get(in, "args"), in);
}

/* --- files ---------------------------------------------------------------------------------- */

/* A path from the root of AFS: "sandbox.test/user", with or without /afs/ before it. */
static const char *path_of(const json_t *in)
{
	const char *p = json_string_value(json_object_get(in, "path"));
	if (!p)
		return NULL;
	p += strspn(p, "/");
	if (strcmp(p, "afs") == 0)
		return "";
	return strncmp(p, "afs/", 4) == 0 ? p + 4 + strspn(p + 4, "/") : p;
}

static enum MHD_Result refuse_err(struct web_request *rq, afs_err err, const struct buf *why)
{
	return web_refuse(rq, (unsigned)afs_err_http(err), afs_err_name(err), "%s", why->len ? why->data : afs_err_text(err));
}

static enum MHD_Result get_file(struct web_request *rq)
{
	CLEANUP(json) json_t *in = body(rq);
	CLEANUP(buf) struct buf why = {};
	const char *path = path_of(in);
	json_int_t from = json_integer_value(json_object_get(in, "from")), n = json_integer_value(json_object_get(in, "count"));
	json_t *out = NULL;
	if (!path || from < 0 || n < 0)
		return web_refuse(rq, 400, "INVAL", "expected a path, and perhaps from and count");
	afs_err err = rq->web->ports.file(rq->web->ports.ctx, rq->session->who, path, (size_t)from, n ? (size_t)n : 100, &out, &why);
	return err == AFS_OK ? web_json(rq, 200, out, NULL) : refuse_err(rq, err, &why);
}

static enum MHD_Result set_acl(struct web_request *rq)
{
	CLEANUP(json) json_t *in = body(rq);
	CLEANUP(buf) struct buf why = {};
	const char *path = path_of(in), *was = json_string_value(json_object_get(in, "was"));
	const json_t *acl = json_object_get(in, "acl");
	if (!path || !was || !json_is_object(acl))
		return web_refuse(rq, 400, "INVAL", "expected a path, the text of the list as it was, and the new list");
	afs_err err = rq->web->ports.acl_store(rq->web->ports.ctx, rq->session->who, path, was, acl, &why);
	char *list = json_dumps(acl, JSON_COMPACT);
	CLEANUP(str) char *object = mem_printf("/afs/%s %s", path, list ? list : "");
	free(list);
	note(rq, person(rq), "fs setacl", object ? object : path, err);
	return err == AFS_OK ? web_json(rq, 200, json_object(), NULL) : refuse_err(rq, err, &why);
}

static enum MHD_Result make_in(struct web_request *rq, bool mounts)
{
	CLEANUP(json) json_t *in = body(rq);
	CLEANUP(buf) struct buf why = {};
	const char *path = path_of(in), *name = json_string_value(json_object_get(in, "name"));
	const char *volume = json_string_value(json_object_get(in, "volume"));
	if (!path || !name || !*name || strchr(name, '/') || (mounts && (!volume || !*volume)))
		return web_refuse(rq, 400, "INVAL", "expected the path of a directory, a name in it%s", mounts ? ", and a volume" : "");
	const struct web_ports *p = &rq->web->ports;
	afs_err err = p->make(p->ctx, rq->session->who, path, name, mounts ? volume : NULL, json_is_true(json_object_get(in, "rw")), &why);
	CLEANUP(str) char *object = mem_printf("/afs/%s/%s %s", path, name, mounts ? volume : "");
	note(rq, person(rq), mounts ? "fs mkmount" : "mkdir", object ? object : path, err);
	return err == AFS_OK ? web_json(rq, 200, json_object(), NULL) : refuse_err(rq, err, &why);
}
static enum MHD_Result mount(struct web_request *rq) { return make_in(rq, true); }
static enum MHD_Result make_directory(struct web_request *rq) { return make_in(rq, false); }

/* --- texts ---------------------------------------------------------------------------------- */

static enum MHD_Result send_text(struct web_request *rq, enum web_text what, const char *type)
{
	CLEANUP(buf) struct buf out = {};
	afs_err err = rq->web->ports.text(rq->web->ports.ctx, what, WEB_TEXT_MAX, &out);
	if (err != AFS_OK)
		return web_refuse(rq, (unsigned)afs_err_http(err), afs_err_name(err), "it cannot be read: %s", afs_err_text(err));
	return web_bytes(rq, 200, type, out.data ? out.data : "", out.len);
}
static enum MHD_Result get_log(struct web_request *rq) { return send_text(rq, WEB_LOG, "text/plain; charset=utf-8"); }
static enum MHD_Result get_audit(struct web_request *rq) { return send_text(rq, WEB_AUDIT, "application/jsonl"); }
static enum MHD_Result get_config(struct web_request *rq) { return send_text(rq, WEB_CONFIG, "text/plain; charset=utf-8"); }

static enum MHD_Result check_config(struct web_request *rq)
{
	CLEANUP(buf) struct buf problems = {};
	afs_err err = rq->web->ports.check_config(rq->web->ports.ctx, rq->body.data ? rq->body.data : "", rq->body.len, &problems);
	return web_json(rq, 200, json_pack("{s:b, s:s}", "valid", (int)(err == AFS_OK), "problems", problems.len ? problems.data : ""), NULL);
}

/* --- routes --------------------------------------------------------------------------------- */

enum need { ANYBODY, SOMEBODY, ADMINISTRATOR };
struct route {
	const char *path, *help;
	bool post;
	enum need need;
	enum MHD_Result (*answer)(struct web_request *rq);
};
static enum MHD_Result openapi(struct web_request *rq);
static const struct route routes[] = {
	{"/healthz", "It answers", false, ANYBODY, healthz},
	{"/readyz", "Every role runs", false, ANYBODY, readyz},
	{"/metrics", "Counters for Prometheus", false, ANYBODY, metrics},
	{"/api/v1/session", "Sign in", true, ANYBODY, sign_in},
	{"/api/v1/session", "Who is signed in", false, SOMEBODY, get_session},
	{"/api/v1/session/end", "Sign out here", true, SOMEBODY, end},
	{"/api/v1/session/end-all", "Sign out everywhere", true, SOMEBODY, end_all},
	{"/api/v1/status", "What runs where", false, SOMEBODY, status},
	{"/api/v1/live", "Status again and again, as Server-Sent Events", false, SOMEBODY, live},
	{"/api/v1/commands", "The commands that may be run", false, SOMEBODY, commands},
	{"/api/v1/openapi.json", "This description", false, SOMEBODY, openapi},
	{"/api/v1/list", "A page of what a command lists", true, SOMEBODY, list},
	{"/api/v1/mount", "Make a mount point", true, SOMEBODY, mount},
	{"/api/v1/mkdir", "Make a directory", true, SOMEBODY, make_directory},
	{"/api/v1/file", "A file or directory, as I see it", true, SOMEBODY, get_file},
	{"/api/v1/acl", "Store a directory's access list", true, SOMEBODY, set_acl},
	{"/api/v1/log", "The end of the log", false, ADMINISTRATOR, get_log},
	{"/api/v1/audit", "The end of the trail of changes", false, ADMINISTRATOR, get_audit},
	{"/api/v1/config", "The configuration file", false, ADMINISTRATOR, get_config},
	{"/api/v1/config", "Check another text of it", true, ADMINISTRATOR, check_config},
};

static json_t *operation(const char *id, const char *help, json_t *body_schema)
{
	json_t *op = json_pack("{s:s, s:s, s:{s:{s:s}, s:{s:s}}}", "operationId", id, "summary", help, "responses", "200", "description", "done",
		"default", "description", "refused: {error, text}");
	if (body_schema)
		json_object_set_new(op, "requestBody", json_pack("{s:{s:{s:o}}}", "content", "application/json", "schema", body_schema));
	return op;
}

static json_t *arguments_schema(const json_t *args)
{
	json_t *properties = json_object(), *required = json_array(), *a;
	size_t i;
	json_array_foreach(args, i, a)
	{
		const char *kind = text(a, "kind");
		json_t *p = strcmp(kind, "flag") == 0   ? json_pack("{s:s, s:s}", "type", "boolean", "description", text(a, "help"))
			    : strcmp(kind, "list") == 0 ? json_pack("{s:s, s:{s:s}, s:s}", "type", "array", "items", "type", "string",
								  "description", text(a, "help"))
							: json_pack("{s:s, s:s}", "type", "string", "description", text(a, "help"));
		json_object_set_new(properties, text(a, "name"), p);
		if (json_is_true(json_object_get(a, "required")))
			json_array_append_new(required, json_string(text(a, "name")));
	}
	return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required, "additionalProperties", 0);
}

static enum MHD_Result openapi(struct web_request *rq)
{
	CLEANUP(json) json_t *list = commands_for(rq);
	json_t *paths = json_object(), *c;
	size_t i;
	for (const struct route *r = routes; r < routes + ARRAY_SIZE(routes); r++) {
		json_t *at = json_object_get(paths, r->path);
		if (!at) {
			at = json_object();
			json_object_set_new(paths, r->path, at);
		}
		CLEANUP(str) char *id = mem_printf("%s %s", r->post ? "post" : "get", r->path);
		json_object_set_new(at, r->post ? "post" : "get", operation(id ? id : r->path, r->help, NULL));
	}
	json_array_foreach(list, i, c)
	{
		const char *suite = text(c, "suite");
		CLEANUP(str) char *path = mem_printf("/api/v1/run/%s%s%s", suite, *suite ? "/" : "", text(c, "name"));
		CLEANUP(str) char *id = mem_printf("%s%s%s", suite, *suite ? " " : "", text(c, "name"));
		if (path && id)
			json_object_set_new(paths, path,
				json_pack("{s:o}", "post", operation(id, text(c, "help"), arguments_schema(json_object_get(c, "args")))));
	}
	return web_json(rq, 200, json_pack("{s:s, s:{s:s, s:s}, s:o}", "openapi", "3.1.0", "info", "title", "afscell", "version", "1", "paths", paths), NULL);
}

enum MHD_Result api_answer(struct web_request *rq)
{
	static const char prefix[] = "/api/v1/run/";
	bool known = false;
	for (const struct route *r = routes; r < routes + ARRAY_SIZE(routes); r++) {
		if (strcmp(rq->path, r->path) != 0)
			continue;
		known = true;
		if (r->post != rq->post)
			continue;
		if (r->need != ANYBODY && !rq->session)
			return web_refuse(rq, 401, "NOAUTH", "sign in first");
		if (r->need == ADMINISTRATOR && !is_administrator(rq))
			return web_refuse(rq, 403, "ACCESS", "only an administrator of the cell may do this");
		return r->answer(rq);
	}
	for (size_t i = 0; i < web_asset_count; i++)
		if (strcmp(rq->path, web_assets[i].path) == 0) {
			const struct web_asset *a = &web_assets[i];
			return rq->post ? web_refuse(rq, 405, "NOTSUP", "this is only read")
					: web_bytes(rq, 200, a->type, a->data, (size_t)(a->end - a->data));
		}
	if (strncmp(rq->path, prefix, sizeof(prefix) - 1) == 0)
		return rq->post ? run(rq, rq->path + sizeof(prefix) - 1) : web_refuse(rq, 405, "NOTSUP", "commands are sent with POST");
	return known ? web_refuse(rq, 405, "NOTSUP", "this is not how it is asked for") : web_refuse(rq, 404, "NOENT", "there is nothing at this address");
}
