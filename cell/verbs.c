/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/verbs.h"

#include "cell/base/text.h"
#include "cell/cell_parts.h"
#include "cell/console.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static afs_err verb_status(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)rq;
	json_t *st = cell_status(ctx);
	int rc = st ? json_object_update(out, st) : -1;
	json_decref(st);
	return rc == 0 ? AFS_OK : AFS_ENOMEM;
}

static afs_err verb_down(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)rq;
	json_object_set_new(out, "pid", json_integer(getpid()));
	cell_stop(ctx);
	return AFS_OK;
}

static void on_event(void *ctx, enum cell_event ev, const char *what, const char *text)
{
	ctl_progress(ctx, json_pack("{s:i, s:s, s:s}", "event", (int)ev, "what", what, "text", text));
}

static afs_err verb_reconcile(void *ctx, struct ctl_request *rq, json_t *out)
{
	(void)out;
	const char *path = ctl_str(rq, "config");
	if (!path || *path != '/')
		return ctl_refuse(rq, AFS_EINVAL, "reconcile needs the path of a configuration");
	CLEANUP(buf) struct buf problems = {};
	struct conf *conf;
	afs_err err = conf_load(path, &conf, &problems);
	if (err != AFS_OK)
		return ctl_refuse(rq, err, "%s", problems.data ? problems.data : afs_err_text(err));
	struct cell_watch watch = {on_event, rq};
	err = cell_reconcile(ctx, conf, json_object_get(rq->args, "passwords"), &watch);
	return err == AFS_OK ? AFS_OK : ctl_refuse(rq, err, "it could not be made to match %s in everything", path);
}

static afs_err verb_users_missing(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	json_t *missing = json_object(), *name;
	size_t i;
	json_array_foreach(json_object_get(rq->args, "names"), i, name)
	{
		const char *s = json_string_value(name);
		CLEANUP(str) char *principal = mem_strdup(s ? s : "");
		if (!s || !c->realm)
			continue;
		if (!principal)
			return AFS_ENOMEM;
		if (strchr(principal, '.')) /* an instance */
			*strchr(principal, '.') = '/';
		json_object_set_new(missing, s, json_boolean(!realm_user_exists(c->realm, principal)));
	}
	json_object_set_new(out, "missing", missing);
	return AFS_OK;
}

/* --- check --------------------------------------------------------------------------------- */

struct checking {
	struct ctl_request *rq;
	const char *volume;
	json_int_t findings;
};

static void on_finding(void *ctx, const struct vs_finding *f)
{
	struct checking *k = ctx;
	char text[256];
	snprintf(text, sizeof(text), "vnode %u.%u: %s", f->fid.vnode, f->fid.unique, f->text);
	ctl_progress(k->rq, json_pack("{s:s, s:s}", "volume", k->volume, "finding", f->text[0] ? text : "damaged"));
	k->findings++;
}

/* Was this volume asked for?  All are when none is named. */
static bool wanted(const json_t *names, const char *name, afs_volid id)
{
	char number[16];
	size_t i;
	json_t *v;
	snprintf(number, sizeof(number), "%u", id);
	json_array_foreach(names, i, v)
	{
		const char *s = json_string_value(v);
		if (s && (strcmp(s, name) == 0 || strcmp(s, number) == 0))
			return true;
	}
	return json_array_size(names) == 0;
}

static afs_err verb_check(void *ctx, struct ctl_request *rq, json_t *out)
{
	struct cell *c = ctx;
	const json_t *names = json_object_get(rq->args, "volumes");
	json_int_t volumes = 0, findings = 0;
	if (!c->store)
		return ctl_refuse(rq, AFS_ENOENT, "there are no volumes on this machine: its file server is off");
	for (struct vs_partition *p = vs_partition_next(c->store, NULL); p; p = vs_partition_next(c->store, p)) {
		CLEANUP(heap) struct vs_listed *list = NULL;
		size_t n = 0;
		TRY(vs_volume_list(p, &list, &n));
		for (size_t i = 0; i < n; i++) {
			CLEANUP(vs_volume) struct vs_volume *v = NULL;
			struct vs_header h = {};
			char id[16];
			snprintf(id, sizeof(id), "%u", list[i].id);
			afs_err err = vs_volume_find(c->store, p, list[i].id, &v);
			if (err == AFS_OK)
				err = vs_volume_header(v, &h);
			const char *name = err == AFS_OK ? h.name : id;
			if (!wanted(names, name, list[i].id))
				continue;
			volumes++;
			size_t found = 0;
			struct checking k = {rq, name, 0};
			if (err == AFS_OK)
				err = vs_check(v, on_finding, &k, &found);
			if (err != AFS_OK) {
				ctl_progress(rq, json_pack("{s:s, s:s}", "volume", name, "finding", afs_err_text(err)));
				found++;
			} else if (found == 0) {
				ctl_progress(rq, json_pack("{s:s}", "volume", name));
			}
			findings += (json_int_t)found;
		}
	}
	if (volumes == 0 && json_array_size(names))
		return ctl_refuse(rq, AFS_ENOENT, "no such volume on this machine");
	json_object_set_new(out, "volumes", json_integer(volumes));
	json_object_set_new(out, "findings", json_integer(findings));
	return AFS_OK;
}

static const struct ctl_verb verbs[] = {
	{"status", CTL_ANYONE, verb_status},
	{"down", CTL_OWNER, verb_down},
	{"reconcile", CTL_OWNER, verb_reconcile},
	{"users.missing", CTL_OWNER, verb_users_missing},
	{"check", CTL_OWNER, verb_check},
};

afs_err verbs_add(struct ctl_server *ctl, struct cell *c)
{
	TRY(ctl_server_add(ctl, verbs, ARRAY_SIZE(verbs), c));
	TRY(verbs_add_people(ctl, c));
	TRY(verbs_add_keys(ctl, c));
	TRY(verbs_add_console(ctl, c));
	return verbs_add_client(ctl, c);
}
