/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Instances on the way to their goals.  One thread does all starting and stopping, so that no two of these
 * meet; it holds no lock while it does.  A start that fails is tried again after 1, 2, 4 ... seconds, and given
 * up after ERRORS_MAX; a new goal tries afresh. */
#include "cell/bos/inside.h"

#include "cell/base/log.h"

#include <stdio.h>
#include <string.h>

enum { ERRORS_MAX = 10, BACKOFF_MAX_S = 60, CLOCK_LOOK_S = 30 };

int64_t bos_now(void) { return clk_wall() / NS_PER_SEC; }

int bos_find(const struct bos_server *s, struct xdr_str name)
{
	for (size_t i = 0; i < s->config.instance_count; i++)
		if (xdr_str_is(name, s->instances[i].name))
			return (int)i;
	return -1;
}

void bos_set_goal_locked(struct bos_server *s, size_t i, int32_t goal)
{
	struct bos_run *r = &s->run[i];
	r->goal = goal;
	r->errors = 0;
	r->error_stop = false;
	r->next_try = 0;
	cond_broadcast(&s->changed);
}

static bool at_goal(const struct bos_run *r)
{
	if (r->restart)
		return false;
	return r->goal == BOS_RUNNING ? r->state == BOS_RUNNING || r->error_stop : r->state == BOS_SHUTDOWN;
}

bool bos_settled_locked(const struct bos_server *s)
{
	for (size_t i = 0; i < s->config.instance_count; i++)
		if (!at_goal(&s->run[i]))
			return false;
	return true;
}

afs_err bos_wait_settled(struct bos_server *s, struct rpc_call *call)
{
	afs_err err = AFS_OK;
	mtx_lock(&s->lock);
	while (err == AFS_OK && !bos_settled_locked(s)) {
		if (s->stopping || rpc_call_is_over(call))
			err = AFS_ECANCELLED;
		else
			(void)cond_wait_until(&s->changed, &s->lock, clk_mono() + SEC(1)); /* whoever gave up does not wake us */
	}
	mtx_unlock(&s->lock);
	return err;
}

/* --- the general restart ----------------------------------------------------------------------------------- */

static void restart_all_locked(struct bos_server *s) REQUIRES(s->lock)
{
	for (size_t i = 0; i < s->config.instance_count; i++)
		if (s->run[i].goal == BOS_RUNNING)
			s->run[i].restart = true;
	cond_broadcast(&s->changed);
}

void bos_plan_locked(struct bos_server *s, int64_t now)
{
	if (s->kept.general.mask & BOS_KT_NOW) {
		log_info("bos.restart.now");
		restart_all_locked(s);
	}
	s->general_due = bos_time_next(&s->kept.general, now);
	cond_broadcast(&s->changed);
}

void bos_due_locked(struct bos_server *s, int64_t now)
{
	if (now < s->general_due)
		return;
	log_info("bos.restart.due");
	restart_all_locked(s);
	s->general_due = bos_time_next(&s->kept.general, now);
}

/* --- the thread ------------------------------------------------------------------------------------------ */

static void stop_locked(struct bos_server *s, size_t i) REQUIRES(s->lock)
{
	struct bos_run *r = &s->run[i];
	r->state = BOS_SHUTTING_DOWN;
	mtx_unlock(&s->lock);
	s->config.ports.stop(s->config.ctx, i);
	mtx_lock(&s->lock);
	r->state = BOS_SHUTDOWN;
	r->last_exit = bos_now();
	log_info("bos.instance.stopped name=%s", s->instances[i].name);
}

static void start_failed_locked(struct bos_server *s, size_t i, afs_err err, mono_ns now) REQUIRES(s->lock)
{
	struct bos_run *r = &s->run[i];
	r->state = BOS_SHUTDOWN;
	r->last_exit = r->last_error = bos_now();
	r->error_code = afs_err_errno(err);
	r->error_stop = ++r->errors >= ERRORS_MAX;
	int wait = 1 << MIN(r->errors - 1, 6U);
	r->next_try = now + SEC(MIN(wait, BACKOFF_MAX_S));
	log_warn("bos.instance.start_failed name=%s err=%s errors=%u%s", s->instances[i].name, afs_err_name(err), r->errors,
		r->error_stop ? " given_up=1" : "");
}

static void start_locked(struct bos_server *s, size_t i) REQUIRES(s->lock)
{
	struct bos_run *r = &s->run[i];
	r->state = BOS_STARTING_UP;
	mtx_unlock(&s->lock);
	afs_err err = s->config.ports.start(s->config.ctx, i);
	mtx_lock(&s->lock);
	if (err != AFS_OK) {
		start_failed_locked(s, i, err, clk_mono());
		return;
	}
	r->state = BOS_RUNNING;
	r->errors = 0;
	r->started = bos_now();
	r->starts++;
	log_info("bos.instance.started name=%s", s->instances[i].name);
}

/* One step of one instance.  False: nothing is to be done before *next. */
static bool step_locked(struct bos_server *s, mono_ns now, mono_ns *next) REQUIRES(s->lock)
{
	*next = MONO_NEVER;
	for (size_t i = 0; i < s->config.instance_count; i++) {
		struct bos_run *r = &s->run[i];
		bool up = r->state == BOS_RUNNING;
		if (up && (r->restart || r->goal == BOS_SHUTDOWN)) {
			stop_locked(s, i);
			return true;
		}
		if (up)
			continue;
		if (r->restart) {
			r->restart = false;
			r->goal = BOS_RUNNING;
			r->next_try = 0;
		}
		if (r->goal != BOS_RUNNING || r->error_stop)
			continue;
		if (r->next_try > now) {
			*next = MIN(*next, r->next_try);
			continue;
		}
		start_locked(s, i);
		return true;
	}
	return false;
}

static void *mind(void *arg)
{
	struct bos_server *s = arg;
	pthread_setname_np(pthread_self(), "overseer");
	mtx_lock(&s->lock);
	while (!s->stopping) {
		mono_ns next;
		int64_t wall = bos_now();
		bos_due_locked(s, wall);
		bool did = step_locked(s, clk_mono(), &next);
		if (s->general_due != INT64_MAX) /* looked at often, for clocks are set */
			next = MIN(next, clk_mono() + SEC(MIN(s->general_due - wall, (int64_t)CLOCK_LOOK_S)));
		cond_broadcast(&s->changed);
		if (did)
			continue;
		if (next == MONO_NEVER)
			cond_wait(&s->changed, &s->lock);
		else
			(void)cond_wait_until(&s->changed, &s->lock, next); /* either way there is something to look at */
	}
	mtx_unlock(&s->lock);
	return NULL;
}

/* --- repair ---------------------------------------------------------------------------------------------- */

static void say(void *ctx, const char *line)
{
	char when[32];
	time_t now = (time_t)bos_now();
	struct tm tm;
	if (!localtime_r(&now, &tm) || !strftime(when, sizeof(when), "%a %b %e %H:%M:%S %Y", &tm))
		when[0] = '\0';
	fprintf(ctx, "%s: %s\n", when, line);
	fflush(ctx);
}

static void *repair_thread(void *arg)
{
	struct bos_server *s = arg;
	pthread_setname_np(pthread_self(), "repair");
	FILE *f = fopen(s->config.repair_log, "we");
	if (f) {
		char line[64];
		afs_err err = s->config.ports.repair(s->config.ctx, s->repair.part, s->repair.volume, say, f, &s->repair.cancel);
		snprintf(line, sizeof(line), err == AFS_OK ? "done" : "ended early: %s", afs_err_text(err));
		say(f, line);
		fclose(f);
	} else {
		log_warn("bos.repair.no_log path=%s", s->config.repair_log);
	}
	mtx_lock(&s->lock);
	s->repair.busy = false;
	cond_broadcast(&s->changed);
	mtx_unlock(&s->lock);
	return NULL;
}

static afs_err repair_start_locked(struct bos_server *s, int32_t part, uint32_t volume) REQUIRES(s->lock)
{
	if (s->repair.busy)
		return AFS_EBUSY;
	if (s->stopping)
		return AFS_ECANCELLED;
	if (s->repair.joinable)
		pthread_join(s->repair.thread, NULL); /* it has said that it is done */
	s->repair.joinable = false;
	s->repair.part = part;
	s->repair.volume = volume;
	if (pthread_create(&s->repair.thread, NULL, repair_thread, s) != 0)
		return AFS_ENOMEM;
	s->repair.busy = s->repair.joinable = true;
	return AFS_OK;
}

afs_err bos_repair_start(struct bos_server *s, int32_t part, uint32_t volume)
{
	mtx_lock(&s->lock);
	afs_err err = repair_start_locked(s, part, volume);
	mtx_unlock(&s->lock);
	return err;
}

/* --- life -------------------------------------------------------------------------------------------------- */

afs_err bos_server_new(const struct bos_config *config, struct bos_server **out)
{
	if (config->instance_count > BOS_INSTANCES_MAX)
		return AFS_EINVAL;
	struct bos_server *s = mem_new(struct bos_server);
	if (!s)
		return AFS_ENOMEM;
	s->config = *config;
	memcpy(s->instances, config->instances, config->instance_count * sizeof(s->instances[0]));
	mtx_init(&s->lock, RANK_BOS);
	cond_init(&s->changed);
	bos_state_init(&s->kept);
	afs_err err = bos_state_load(config->state, s->instances, config->instance_count, &s->kept);
	if (err != AFS_OK) {
		bos_server_free(s);
		return err;
	}
	config->ports.users_changed(config->ctx, (const char *const *)s->kept.users, s->kept.user_count);
	*out = s;
	return AFS_OK;
}

afs_err bos_server_start(struct bos_server *s)
{
	mtx_lock(&s->lock);
	for (size_t i = 0; i < s->config.instance_count; i++)
		s->run[i] = (struct bos_run){.goal = s->kept.file_goal[i], .state = BOS_RUNNING, .started = bos_now(), .starts = 1};
	s->general_due = bos_time_next(&s->kept.general, bos_now()); /* "now" was when it was set */
	mtx_unlock(&s->lock);
	if (pthread_create(&s->thread, NULL, mind, s) != 0)
		return AFS_ENOMEM;
	s->runs = true;
	return AFS_OK;
}

void bos_server_stop(struct bos_server *s)
{
	mtx_lock(&s->lock);
	s->stopping = true;
	__atomic_store_n(&s->repair.cancel, true, __ATOMIC_RELAXED);
	cond_broadcast(&s->changed);
	mtx_unlock(&s->lock);
	if (s->runs)
		pthread_join(s->thread, NULL);
	s->runs = false;
	if (s->repair.joinable)
		pthread_join(s->repair.thread, NULL);
	s->repair.joinable = false;
}

void bos_server_free(struct bos_server *s)
{
	if (!s)
		return;
	bos_state_fini(&s->kept);
	cond_fini(&s->changed);
	mtx_fini(&s->lock);
	mem_free(s);
}
