/* SPDX-License-Identifier: BSD-2-Clause
 * What to do with each way a call can fail: the table of cache-manager.md §5. */
#include "client/cm/cm.h"

#include "cell/base/log.h"

#include <stdio.h>
#include <time.h>

enum { VICECONNBAD = 1234, VICETOKENDEAD = 1235, CPS_FAILED = -1001 };
#define DOWN_FOR SEC(5) /* a dead server is not asked again for so long */
#define BUSY_DEFAULT SEC(60)
#define PAUSE_LONGEST SEC(2)

static void pause_ns(int64_t ns)
{
	nanosleep(
		&(struct timespec){.tv_sec = (time_t)(ns / NS_PER_SEC), .tv_nsec = ns % NS_PER_SEC},
		NULL);
}

static _Thread_local pid_t works_for;

void cm_try_for(pid_t pid) { works_for = pid; }

/* A pause between attempts, which ends early when the client stops. */
static void pause_in(struct cm_try *t, int64_t ns)
{
	t->pausing = true;
	for (mono_ns until = clk_mono() + ns; !t->cm->stopping && clk_mono() < until;)
		pause_ns(MIN(until - clk_mono(), MSEC(100)));
	t->pausing = false;
}

size_t client_waits(struct client *c, struct client_wait *out, size_t cap)
{
	struct cm *cm = (struct cm *)c;
	size_t n = 0;
	mono_ns now = clk_mono();
	mtx_lock(&cm->tries_lock);
	list_each(e, &cm->tries)
	{
		const struct cm_try *t = list_entry(e, struct cm_try, waits);
		if (n < cap)
			out[n] = (struct client_wait){.uid = t->ident->uid, .pid = t->pid, .volume = t->vol->id,
				.server = t->server && !t->pausing ? t->server->addrs[t->server->addr_good].ip : 0,
				.waited_ms = (uint64_t)(now - t->began) / 1000000};
		if (n < cap)
			snprintf(out[n].what, sizeof(out[n].what), "%s", t->pausing ? "volume that is busy" : t->server ? "answer of a server"
				: "place of a volume");
		n++;
	}
	mtx_unlock(&cm->tries_lock);
	return n;
}

static bool token_refused(const struct cm_try *t)
{
	if (t->res.code == VICETOKENDEAD)
		return true;
	switch (t->err) {
	case AFS_EEXPIRED:
	case AFS_EBADTICKET:
	case AFS_EUNKNOWNKEY:
	case AFS_ENOAUTH:
	case AFS_ELEVEL:
	case AFS_ETICKETLEN:
		return t->used->number != 0;
	default:
		return false;
	}
}

static bool unreachable(afs_err err)
{
	return err == AFS_EDEAD || err == AFS_ETIMEDOUT || err == AFS_ENOSERVICE;
}

static void mark_down(struct cm_try *t)
{
	struct cm *cm = t->cm;
	mtx_lock(&cm->volumes_lock);
	bool was_up = !t->server->down_until;
	t->server->addr_good = (t->server->addr_good + 1) % t->server->addr_n;
	t->server->down_until = cm_now(cm) + DOWN_FOR;
	mtx_unlock(&cm->volumes_lock);
	if (was_up) {
		struct rx_addr a = rpc_conn_peer(t->conn);
		log_warn("cm.server.down addr=%u.%u.%u.%u:%u", a.ip >> 24, a.ip >> 16 & 255,
			a.ip >> 8 & 255, a.ip & 255, a.port);
	}
}

static void mark_up(struct cm_try *t)
{
	if (!t->server->down_until) /* a stale look costs one more call of the slow path */
		return;
	mtx_lock(&t->cm->volumes_lock);
	t->server->down_until = 0;
	mtx_unlock(&t->cm->volumes_lock);
	struct rx_addr a = rpc_conn_peer(t->conn);
	log_info("cm.server.up addr=%u.%u.%u.%u:%u", a.ip >> 24, a.ip >> 16 & 255, a.ip >> 8 & 255,
		a.ip & 255, a.port);
}

/* The next site that is neither skipped nor known to be down.  NULL: none. */
static struct cm_server *choose(struct cm_try *t, unsigned *site)
{
	struct cm *cm = t->cm;
	struct cm_server *s = NULL;
	mono_ns now = cm_now(cm);
	mtx_lock(&cm->volumes_lock);
	for (unsigned i = 0; i < t->vol->site_n && !s; i++) {
		unsigned at = (t->vol->site_good + i) % t->vol->site_n;
		struct cm_server *c = t->vol->sites[at];
		if (t->skip >> at & 1)
			continue;
		if (c->down_until > now)
			continue;
		if (c->down_until) /* one call finds out; the others keep away meanwhile */
			c->down_until = now + DOWN_FOR;
		s = c;
		*site = at;
	}
	mtx_unlock(&cm->volumes_lock);
	return s;
}

static bool skip_this_site(struct cm_try *t)
{
	mtx_lock(&t->cm->volumes_lock);
	for (unsigned i = 0; i < t->vol->site_n; i++)
		if (t->vol->sites[i] == t->server)
			t->skip |= 1u << i;
	unsigned all = (1u << t->vol->site_n) - 1;
	bool more = (t->skip & all) != all;
	mtx_unlock(&t->cm->volumes_lock);
	return more;
}

/* Whether to go round again after t->err. */
static bool again(struct cm_try *t)
{
	struct cm *cm = t->cm;
	if (t->err == AFS_OK || t->attempts > 200)
		return false;
	if (token_refused(t)) {
		if (!t->used->number)
			return false;
		if (!atomic_exchange(&t->used->bad, true))
			log_warn("cm.token.refused user=%u cell=%s err=%s: going on without it",
				t->used->uid, t->used->cell->name, afs_err_name(t->err));
		cm_conn_drop(cm, t->used, t->conn);
		cm_ident_unref(cm, t->used);
		t->used = cm_ident_ref(t->ident->cell->anonymous);
		return true;
	}
	if (t->err == AFS_ERESTARTING && rpc_conn_is_local(t->conn) && t->attempts < 20) {
		cm_conn_drop(cm, t->used, t->conn); /* its port was closed: the network tells when it is back */
		return true;
	}
	if (t->res.code == VICECONNBAD && t->attempts < 3) {
		cm_conn_drop(cm, t->used, t->conn);
		return true;
	}
	if (unreachable(t->err)) {
		mark_down(t);
		cm_conn_drop(cm, t->used, t->conn);
		return skip_this_site(t);
	}
	if (t->err == AFS_EVNOSERVICE)
		return skip_this_site(t);
	if (t->err == AFS_ENOVOL || t->err == AFS_EVMOVED || t->err == AFS_EVOFFLINE ||
		t->err == AFS_EVSALVAGE) {
		cm_volume_forget(cm, t->vol);
		if (t->relocated++ >= 3)
			return skip_this_site(t);
		if (t->relocated > 1)
			pause_in(t, MSEC(200) << t->relocated);
		return cm_now(cm) < t->deadline;
	}
	if (t->err == AFS_EVBUSY || t->err == AFS_ERESTARTING || t->err == AFS_EOVERLOAD ||
		t->err == AFS_EVOLTRANS || t->res.code == CPS_FAILED) {
		if (cm_now(cm) >= t->deadline)
			return false;
		if (skip_this_site(t))
			return true;
		t->skip = 0;
		pause_in(t, MIN(MSEC(50) << MIN(t->attempts, 10u), PAUSE_LONGEST));
		return true;
	}
	return false;
}

bool cm_try(struct cm_try *t)
{
	struct cm *cm = t->cm;
	if (t->done)
		return false;
	if (!t->begun) {
		t->begun = true;
		t->used = cm_ident_ref(t->ident);
		t->began = clk_mono();
		t->pid = works_for;
		mtx_lock(&cm->tries_lock);
		list_push_back(&cm->tries, &t->waits);
		mtx_unlock(&cm->tries_lock);
		t->deadline = cm_now(cm) + (cm->config.busy_ns ? cm->config.busy_ns : BUSY_DEFAULT);
	} else {
		atomic_fetch_add(&cm->n_calls, 1);
		if (!unreachable(t->err)) {
			int64_t rtt = rpc_conn_rtt_ns(t->conn);
			if (rtt)
				t->server->rtt_ns = rtt; /* a word; who ranks may see the old one */
			mark_up(t);
		}
		t->done = !again(t);
		if (t->done) {
			if (t->err == AFS_EDEAD)
				t->err = AFS_ETIMEDOUT;
			return false;
		}
		atomic_fetch_add(&cm->n_retries, 1);
	}
	if (t->conn)
		rpc_conn_unref(t->conn);
	t->conn = NULL;
	t->attempts++;
	t->res.code = 0;
	t->done = true; /* unless all below goes well */
	if (cm->stopping && !cm->port) {
		t->err = AFS_ECANCELLED;
		return false;
	}
	t->err = cm_volume_locate(cm, t->vol);
	if (t->err)
		return false;
	unsigned site;
	t->server = choose(t, &site);
	if (!t->server) {
		t->err = AFS_ETIMEDOUT;
		return false;
	}
	t->err = cm_conn_get(cm, t->used, t->server, &t->conn);
	if (t->err)
		return false;
	t->sent = cm_now(cm);
	t->done = false;
	return true;
}

afs_err cm_try_end(struct cm_try *t)
{
	if (t->conn)
		rpc_conn_unref(t->conn);
	t->conn = NULL;
	if (t->begun) {
		mtx_lock(&t->cm->tries_lock);
		list_remove(&t->waits);
		mtx_unlock(&t->cm->tries_lock);
	}
	if (t->used)
		cm_ident_unref(t->cm, t->used);
	t->used = NULL;
	return t->err;
}
