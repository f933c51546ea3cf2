/* SPDX-License-Identifier: BSD-2-Clause
 *
 * BOZO's calls: each says who may, then reads or sets.  Names from the wire are compared with those that are
 * known and never become paths. */
#include "cell/bos/inside.h"

#include "cell/base/log.h"
#include "cell/base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RPC_PREFIX bos
#define RPC_ROWS "cell/proto/bos.rpc"
#define RPC_WANT_HANDLERS
#include "rx/xdr/iface_pass.h"

/* The rule for this call. */
#define MAY(verb) TRY(bos_may(call->caller, call->superuser, (verb)))
#define SERVER(call) ((struct bos_server *)(call)->service)

static bool superuser(void *ctx, const struct rx_caller *caller)
{
	const struct bos_server *s = ctx;
	return s->config.superuser && s->config.superuser(s->config.ctx, caller);
}

static void done(void *ctx, const struct rpc_call *call, const void *in, afs_err err, int32_t code, int64_t took_ns)
{
	const struct bos_server *s = ctx;
	if (s->config.done)
		s->config.done(s->config.ctx, call, in, err, code, took_ns);
}

size_t bos_server_services(struct bos_server *s, struct rpc_service *out)
{
	*out = (struct rpc_service){
		.iface = &bos_iface,
		.handlers = bos_handlers,
		.ctx = s,
		.least = s->config.least,
		.allow_anonymous = true,
		.superuser = superuser,
		.done = done,
	};
	return 1;
}

static afs_err give(struct rpc_call *call, const char *text, struct xdr_str *out)
{
	size_t n = strlen(text);
	char *copy = arena_strndup(call->arena, text, MIN(n, (size_t)BOS_STR_MAX));
	if (!copy)
		return AFS_ENOMEM;
	*out = XDR_STR_OF(copy);
	return AFS_OK;
}

/* AFS_ENOENT: no such instance. */
static afs_err find(const struct bos_server *s, struct xdr_str name, size_t *i)
{
	int at = bos_find(s, name);
	if (at < 0)
		return AFS_ENOENT;
	*i = (size_t)at;
	return AFS_OK;
}

/* --- what is there ------------------------------------------------------------------------------------------ */

static const char *description(const struct bos_server *s, size_t i, const struct bos_run *r)
{
	if (strcmp(s->instances[i].type, "fs") != 0)
		return "";
	switch (r->state) {
	case BOS_RUNNING: return "file server running";
	case BOS_STARTING_UP: return "starting file server";
	case BOS_SHUTTING_DOWN: return "file server shutting down";
	default: return "file server shut down";
	}
}

static bool repairs(struct bos_server *s, struct xdr_str name)
{
	mtx_lock(&s->lock);
	bool busy = s->repair.busy;
	mtx_unlock(&s->lock);
	return busy && xdr_str_is(name, BOS_REPAIR);
}

afs_err bos_get_status(struct rpc_call *call, const struct bos_get_status_in *in, struct bos_get_status_out *out)
{
	struct bos_server *s = SERVER(call);
	size_t i;
	MAY(BOS_SEE);
	if (repairs(s, in->instance)) {
		out->status = BOS_RUNNING;
		return give(call, "running now", &out->description);
	}
	TRY(find(s, in->instance, &i));
	mtx_lock(&s->lock);
	struct bos_run r = s->run[i];
	mtx_unlock(&s->lock);
	out->status = r.state;
	return give(call, description(s, i, &r), &out->description);
}

afs_err bos_enumerate_instance(struct rpc_call *call, const struct bos_enumerate_instance_in *in, struct bos_enumerate_instance_out *out)
{
	struct bos_server *s = SERVER(call);
	MAY(BOS_SEE);
	if (in->index < s->config.instance_count)
		return give(call, s->instances[in->index].name, &out->name);
	if (in->index == s->config.instance_count && repairs(s, XDR_STR_OF(BOS_REPAIR)))
		return give(call, BOS_REPAIR, &out->name);
	return AFS_ERANGE;
}

afs_err bos_get_instance_info(struct rpc_call *call, const struct bos_get_instance_info_in *in, struct bos_get_instance_info_out *out)
{
	struct bos_server *s = SERVER(call);
	size_t i;
	MAY(BOS_SEE);
	if (repairs(s, in->instance)) {
		out->status.goal = out->status.fileGoal = BOS_RUNNING;
		return give(call, "cron", &out->type);
	}
	TRY(find(s, in->instance, &i));
	mtx_lock(&s->lock);
	struct bos_run r = s->run[i];
	int32_t file_goal = s->kept.file_goal[i];
	mtx_unlock(&s->lock);
	out->status = (struct bozo_status){
		.goal = r.goal,
		.fileGoal = file_goal,
		.procStartTime = (int32_t)r.started,
		.procStarts = r.starts,
		.lastAnyExit = (int32_t)r.last_exit,
		.lastErrorExit = (int32_t)r.last_error,
		.errorCode = r.error_code,
		.flags = r.error_stop ? BOS_ERROR_STOP : 0,
	};
	return give(call, s->instances[i].type, &out->type);
}

afs_err bos_get_instance_parm(struct rpc_call *call, const struct bos_get_instance_parm_in *in, struct bos_get_instance_parm_out *out)
{
	struct bos_server *s = SERVER(call);
	size_t i;
	MAY(BOS_SEE);
	TRY(find(s, in->instance, &i));
	if (in->num == BOS_PARM_NOTIFIER)
		return AFS_ENOENT; /* none has one */
	if (in->num >= BOS_PARMS_MAX || !s->instances[i].parms[in->num])
		return AFS_ERANGE;
	return give(call, s->instances[i].parms[in->num], &out->parm);
}

afs_err bos_get_instance_strings(struct rpc_call *call, const struct bos_get_instance_strings_in *in, struct bos_get_instance_strings_out *out)
{
	size_t i;
	MAY(BOS_SEE);
	TRY(find(SERVER(call), in->instance, &i));
	return give(call, "", &out->error);
}

/* --- goals ------------------------------------------------------------------------------------------------ */

static afs_err goal_ok(int32_t goal) { return goal == BOS_SHUTDOWN || goal == BOS_RUNNING ? AFS_OK : AFS_ERANGE; }

afs_err bos_set_status(struct rpc_call *call, const struct bos_set_status_in *in, struct bos_set_status_out *out)
{
	struct bos_server *s = SERVER(call);
	size_t i;
	(void)out;
	MAY(BOS_RUN);
	TRY(find(s, in->instance, &i));
	TRY(goal_ok(in->goal));
	mtx_lock(&s->lock);
	int32_t old = s->kept.file_goal[i];
	s->kept.file_goal[i] = in->goal;
	afs_err err = old == in->goal ? AFS_OK : bos_state_save(s->config.state, s->instances, s->config.instance_count, &s->kept);
	if (err == AFS_OK)
		bos_set_goal_locked(s, i, in->goal);
	else
		s->kept.file_goal[i] = old;
	mtx_unlock(&s->lock);
	return err;
}

afs_err bos_set_tstatus(struct rpc_call *call, const struct bos_set_tstatus_in *in, struct bos_set_tstatus_out *out)
{
	struct bos_server *s = SERVER(call);
	size_t i;
	(void)out;
	MAY(BOS_RUN);
	TRY(find(s, in->instance, &i));
	TRY(goal_ok(in->goal));
	mtx_lock(&s->lock);
	bos_set_goal_locked(s, i, in->goal);
	mtx_unlock(&s->lock);
	return AFS_OK;
}

static void shut_down_locked(struct bos_server *s) REQUIRES(s->lock)
{
	for (size_t i = 0; i < s->config.instance_count; i++)
		bos_set_goal_locked(s, i, BOS_SHUTDOWN);
}

static void start_up_locked(struct bos_server *s) REQUIRES(s->lock)
{
	for (size_t i = 0; i < s->config.instance_count; i++)
		if (s->kept.file_goal[i] == BOS_RUNNING)
			bos_set_goal_locked(s, i, BOS_RUNNING);
}

static void restart_locked(struct bos_server *s) REQUIRES(s->lock)
{
	for (size_t i = 0; i < s->config.instance_count; i++) {
		if (s->kept.file_goal[i] != BOS_RUNNING)
			continue;
		bos_set_goal_locked(s, i, BOS_RUNNING);
		s->run[i].restart = s->run[i].state == BOS_RUNNING;
	}
}

afs_err bos_shutdown_all(struct rpc_call *call, const struct bos_shutdown_all_in *in, struct bos_shutdown_all_out *out)
{
	struct bos_server *s = SERVER(call);
	(void)in, (void)out;
	MAY(BOS_RUN);
	mtx_lock(&s->lock);
	shut_down_locked(s);
	mtx_unlock(&s->lock);
	return AFS_OK;
}

afs_err bos_startup_all(struct rpc_call *call, const struct bos_startup_all_in *in, struct bos_startup_all_out *out)
{
	struct bos_server *s = SERVER(call);
	(void)in, (void)out;
	MAY(BOS_RUN);
	mtx_lock(&s->lock);
	start_up_locked(s);
	mtx_unlock(&s->lock);
	return AFS_OK;
}

afs_err bos_restart_all(struct rpc_call *call, const struct bos_restart_all_in *in, struct bos_restart_all_out *out)
{
	struct bos_server *s = SERVER(call);
	(void)in, (void)out;
	MAY(BOS_RUN);
	mtx_lock(&s->lock);
	restart_locked(s);
	mtx_unlock(&s->lock);
	return bos_wait_settled(s, call);
}

/* The overseer is the process that serves the call, and stays: what it runs is restarted. */
afs_err bos_re_bozo(struct rpc_call *call, const struct bos_re_bozo_in *in, struct bos_re_bozo_out *out)
{
	struct bos_server *s = SERVER(call);
	(void)in, (void)out;
	MAY(BOS_RUN);
	mtx_lock(&s->lock);
	restart_locked(s);
	mtx_unlock(&s->lock);
	return AFS_OK;
}

afs_err bos_restart(struct rpc_call *call, const struct bos_restart_in *in, struct bos_restart_out *out)
{
	struct bos_server *s = SERVER(call);
	size_t i;
	(void)out;
	MAY(BOS_RUN);
	TRY(find(s, in->instance, &i));
	mtx_lock(&s->lock);
	bos_set_goal_locked(s, i, BOS_RUNNING);
	s->run[i].restart = s->run[i].state != BOS_SHUTDOWN;
	mtx_unlock(&s->lock);
	return bos_wait_settled(s, call);
}

afs_err bos_wait_all(struct rpc_call *call, const struct bos_wait_all_in *in, struct bos_wait_all_out *out)
{
	(void)in, (void)out;
	MAY(BOS_RUN);
	return bos_wait_settled(SERVER(call), call);
}

/* --- superusers ------------------------------------------------------------------------------------------- */

/* Codes that stock servers pass on from their system; the end of this one list is told so. */
enum { LIST_END = 1, SYS_ENOENT = 2, SYS_EEXIST = 17 };

static size_t configured(struct bos_server *s, struct xdr_str name, bool *found)
{
	char user[BOS_STR_MAX + 1];
	size_t n = 0;
	*found = false;
	while (s->config.ports.user(s->config.ctx, n, user)) {
		*found = *found || xdr_str_is(name, user);
		n++;
	}
	return n;
}

static int added_locked(const struct bos_server *s, struct xdr_str name) REQUIRES(s->lock)
{
	for (size_t i = 0; i < s->kept.user_count; i++)
		if (xdr_str_is(name, s->kept.users[i]))
			return (int)i;
	return -1;
}

afs_err bos_list_susers(struct rpc_call *call, const struct bos_list_susers_in *in, struct bos_list_susers_out *out)
{
	struct bos_server *s = SERVER(call);
	char user[BOS_STR_MAX + 1];
	bool found;
	MAY(BOS_SEE);
	size_t n = configured(s, (struct xdr_str){}, &found);
	if (in->index < n)
		return s->config.ports.user(s->config.ctx, in->index, user) ? give(call, user, &out->name) : rpc_refuse(call, LIST_END);
	mtx_lock(&s->lock);
	bool is = in->index - n < s->kept.user_count;
	afs_err err = is ? give(call, s->kept.users[in->index - n], &out->name) : AFS_OK;
	mtx_unlock(&s->lock);
	return is ? err : rpc_refuse(call, LIST_END);
}

/* Stores the list and tells the cell.  On an error the caller puts the list back. */
static afs_err users_changed_locked(struct bos_server *s) REQUIRES(s->lock)
{
	TRY(bos_state_save(s->config.state, s->instances, s->config.instance_count, &s->kept));
	s->config.ports.users_changed(s->config.ctx, (const char *const *)s->kept.users, s->kept.user_count);
	return AFS_OK;
}

static afs_err add_locked(struct bos_server *s, const char *name) REQUIRES(s->lock)
{
	struct bos_state *k = &s->kept;
	if (k->user_count >= BOS_USERS_MAX)
		return AFS_ETOOMANY;
	char **users = mem_resize(k->users, k->user_count, k->user_count + 1, sizeof(*users));
	if (!users)
		return AFS_ENOMEM;
	k->users = users;
	users[k->user_count] = mem_strdup(name);
	if (!users[k->user_count])
		return AFS_ENOMEM;
	k->user_count++;
	afs_err err = users_changed_locked(s);
	if (err != AFS_OK)
		mem_free(users[--k->user_count]);
	return err;
}

afs_err bos_add_suser(struct rpc_call *call, const struct bos_add_suser_in *in, struct bos_add_suser_out *out)
{
	struct bos_server *s = SERVER(call);
	bool found;
	(void)out;
	MAY(BOS_SET);
	if (!bos_user_ok(in->name.p, in->name.len))
		return AFS_EINVAL;
	(void)configured(s, in->name, &found); /* only whether he is among them */
	mtx_lock(&s->lock);
	found = found || added_locked(s, in->name) >= 0;
	afs_err err = found ? AFS_OK : add_locked(s, in->name.p);
	mtx_unlock(&s->lock);
	return found ? rpc_refuse(call, SYS_EEXIST) : err;
}

static afs_err remove_locked(struct bos_server *s, size_t i) REQUIRES(s->lock)
{
	struct bos_state *k = &s->kept;
	char *gone = k->users[i];
	k->users[i] = k->users[--k->user_count];
	afs_err err = users_changed_locked(s);
	if (err != AFS_OK) {
		k->users[k->user_count++] = k->users[i];
		k->users[i] = gone;
		return err;
	}
	mem_free(gone);
	return AFS_OK;
}

afs_err bos_delete_suser(struct rpc_call *call, const struct bos_delete_suser_in *in, struct bos_delete_suser_out *out)
{
	struct bos_server *s = SERVER(call);
	bool found;
	(void)out;
	MAY(BOS_SET);
	(void)configured(s, in->name, &found); /* only whether he is among them */
	if (found) {
		log_warn("bos.user.configured user=%s: administrators of the configuration are removed there", LOG_SAFE(in->name.p));
		return AFS_EACCESS;
	}
	mtx_lock(&s->lock);
	int i = added_locked(s, in->name);
	afs_err err = i < 0 ? AFS_OK : remove_locked(s, (size_t)i);
	mtx_unlock(&s->lock);
	return i < 0 ? rpc_refuse(call, SYS_ENOENT) : err;
}

/* --- the cell and its keys ---------------------------------------------------------------------------------- */

enum { AFSCONF_NOTFOUND = 70354689 };

afs_err bos_get_cell_name(struct rpc_call *call, const struct bos_get_cell_name_in *in, struct bos_get_cell_name_out *out)
{
	(void)in;
	MAY(BOS_SEE);
	return give(call, SERVER(call)->config.cell, &out->name);
}

afs_err bos_get_cell_host(struct rpc_call *call, const struct bos_get_cell_host_in *in, struct bos_get_cell_host_out *out)
{
	struct bos_server *s = SERVER(call);
	char host[BOS_STR_MAX + 1];
	MAY(BOS_SEE);
	if (!s->config.ports.host(s->config.ctx, in->index, host))
		return AFS_ERANGE;
	return give(call, host, &out->name);
}

afs_err bos_list_keys(struct rpc_call *call, const struct bos_list_keys_in *in, struct bos_list_keys_out *out)
{
	struct bos_server *s = SERVER(call);
	struct bos_key key;
	MAY(BOS_READ);
	if (!s->config.ports.key(s->config.ctx, in->index, &key))
		return AFS_ERANGE;
	/* out->key stays zero: key material does not leave */
	out->kvno = key.kvno;
	out->info = (struct bozo_keyInfo){.mod_sec = (int32_t)key.changed, .keyCheckSum = key.checksum};
	return AFS_OK;
}

afs_err bos_add_key(struct rpc_call *call, const struct bos_add_key_in *in, struct bos_add_key_out *out)
{
	(void)in, (void)out;
	MAY(BOS_IDENTITY);
	return AFS_EACCESS;
}

afs_err bos_delete_key(struct rpc_call *call, const struct bos_delete_key_in *in, struct bos_delete_key_out *out)
{
	struct bos_server *s = SERVER(call);
	struct bos_key key;
	(void)out;
	MAY(BOS_READ); /* who may not see keys does not learn which there are */
	for (size_t i = 0; s->config.ports.key(s->config.ctx, i, &key); i++)
		if (key.kvno == in->kvno) {
			MAY(BOS_IDENTITY);
			return AFS_EACCESS;
		}
	return rpc_refuse(call, AFSCONF_NOTFOUND);
}

afs_err bos_set_cell_name(struct rpc_call *call, const struct bos_set_cell_name_in *in, struct bos_set_cell_name_out *out)
{
	(void)in, (void)out;
	MAY(BOS_IDENTITY);
	return AFS_EACCESS;
}

afs_err bos_add_cell_host(struct rpc_call *call, const struct bos_add_cell_host_in *in, struct bos_add_cell_host_out *out)
{
	(void)in, (void)out;
	MAY(BOS_IDENTITY);
	return AFS_EACCESS;
}

afs_err bos_delete_cell_host(struct rpc_call *call, const struct bos_delete_cell_host_in *in, struct bos_delete_cell_host_out *out)
{
	(void)in, (void)out;
	MAY(BOS_IDENTITY);
	return AFS_EACCESS;
}

/* Callers always prove themselves: asking for that changes nothing. */
afs_err bos_set_no_auth_flag(struct rpc_call *call, const struct bos_set_no_auth_flag_in *in, struct bos_set_no_auth_flag_out *out)
{
	(void)out;
	MAY(in->flag ? BOS_IDENTITY : BOS_SET);
	return AFS_OK;
}

/* --- settings ----------------------------------------------------------------------------------------------- */

static struct bozo_netKTime *restart_time(struct bos_server *s, int32_t type)
{
	return type == BOS_RESTART_GENERAL ? &s->kept.general : type == BOS_RESTART_NEWBIN ? &s->kept.newbin : NULL;
}

afs_err bos_set_restart_time(struct rpc_call *call, const struct bos_set_restart_time_in *in, struct bos_set_restart_time_out *out)
{
	struct bos_server *s = SERVER(call);
	struct bozo_netKTime *at = restart_time(s, in->type);
	(void)out;
	MAY(BOS_SET);
	if (!at)
		return AFS_ERANGE;
	if (!bos_time_ok(&in->time))
		return AFS_EINVAL;
	mtx_lock(&s->lock);
	struct bozo_netKTime old = *at;
	*at = in->time;
	afs_err err = bos_state_save(s->config.state, s->instances, s->config.instance_count, &s->kept);
	if (err != AFS_OK)
		*at = old;
	else if (in->type == BOS_RESTART_GENERAL)
		bos_plan_locked(s, bos_now());
	mtx_unlock(&s->lock);
	return err;
}

afs_err bos_get_restart_time(struct rpc_call *call, const struct bos_get_restart_time_in *in, struct bos_get_restart_time_out *out)
{
	struct bos_server *s = SERVER(call);
	struct bozo_netKTime *at = restart_time(s, in->type);
	MAY(BOS_SEE);
	if (!at)
		return AFS_ERANGE;
	mtx_lock(&s->lock);
	out->time = *at;
	mtx_unlock(&s->lock);
	return AFS_OK;
}

afs_err bos_get_restricted_mode(struct rpc_call *call, const struct bos_get_restricted_mode_in *in, struct bos_get_restricted_mode_out *out)
{
	(void)in;
	MAY(BOS_SEE);
	out->mode = 1;
	return AFS_OK;
}

afs_err bos_set_restricted_mode(struct rpc_call *call, const struct bos_set_restricted_mode_in *in, struct bos_set_restricted_mode_out *out)
{
	(void)out;
	MAY(BOS_SET);
	if (in->mode != 0 && in->mode != 1)
		return AFS_ERANGE;
	if (!in->mode)
		MAY(BOS_PROGRAM);
	return AFS_OK;
}
