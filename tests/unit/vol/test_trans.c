/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "fileserver/vol/vol_trans.h"

#include <pthread.h>

static struct vol_trans *begin(struct vol_trans_table *t, uint32_t volid, mono_ns now)
{
	struct vol_trans *tr = NULL;
	assert_ok(vol_trans_begin(t, volid, 0, VOL_IT_OFFLINE, "TransCreate", now, &tr));
	return tr;
}

static void end(struct vol_trans_table *t, struct vol_trans *tr)
{
	vol_trans_remove(t, tr);
	mem_free(tr);
}

static void a_volume_is_in_one_transaction_at_a_time(void **state)
{
	(void)state;
	struct vol_trans_table t;
	struct vol_trans *second;
	vol_trans_init(&t);
	struct vol_trans *tr = begin(&t, 7, 0);
	assert_err(vol_trans_begin(&t, 7, 0, VOL_IT_BUSY, "TransCreate", 0, &second), AFS_EVOLTRANS);
	assert_ok(vol_trans_begin(&t, 7, 1, VOL_IT_BUSY, "TransCreate", 0, &second));
	end(&t, second);
	end(&t, tr);
	tr = begin(&t, 7, 0);
	end(&t, tr);
	vol_trans_fini(&t);
}

static void a_claim_finds_live_transactions_only(void **state)
{
	(void)state;
	struct vol_trans_table t;
	struct vol_trans *tr, *again;
	vol_trans_init(&t);
	tr = begin(&t, 7, 0);
	int32_t tid = tr->tid;
	vol_trans_release(&t, tr, 0);
	assert_err(vol_trans_claim(&t, tid + 1, "Dump", false, &again), AFS_ENOENT);
	assert_ok(vol_trans_claim(&t, tid, "DeleteVolume", false, &again));
	assert_ptr_equal(again, tr);
	tr->deleted = true;
	vol_trans_release(&t, tr, 0);
	assert_err(vol_trans_claim(&t, tid, "Dump", false, &again), AFS_ENOENT);
	assert_ok(vol_trans_claim(&t, tid, "EndTrans", true, &again));
	end(&t, tr);
	vol_trans_fini(&t);
}

static void only_unclaimed_transactions_idle_out(void **state)
{
	(void)state;
	struct vol_trans_table t;
	vol_trans_init(&t);
	struct vol_trans *tr = begin(&t, 7, SEC(10));
	assert_null(vol_trans_claim_idle(&t, MONO_NEVER));
	vol_trans_release(&t, tr, SEC(20));
	assert_null(vol_trans_claim_idle(&t, SEC(20)));
	assert_ptr_equal(vol_trans_claim_idle(&t, SEC(21)), tr);
	end(&t, tr);
	vol_trans_fini(&t);
}

static void monitor_tells_what_runs(void **state)
{
	(void)state;
	struct vol_trans_table t;
	struct transDebugInfo d[2];
	vol_trans_init(&t);
	struct vol_trans *tr = begin(&t, 536870915, 0);
	assert_int_equal(vol_trans_monitor(&t, d, 2), 1);
	assert_int_equal(d[0].tid, tr->tid);
	assert_int_equal(d[0].volid, 536870915);
	assert_int_equal(d[0].iflags, VOL_IT_OFFLINE);
	assert_string_equal(d[0].lastProcName, "TransCreate");
	end(&t, tr);
	assert_int_equal(vol_trans_monitor(&t, d, 2), 0);
	vol_trans_fini(&t);
}

static struct vol_trans_table shared;

static void *claim_and_end(void *tid)
{
	struct vol_trans *tr;
	if (vol_trans_claim(&shared, *(int32_t *)tid, "EndTrans", true, &tr) == AFS_OK)
		end(&shared, tr);
	return NULL;
}

static void a_second_call_waits_for_the_first(void **state)
{
	(void)state;
	pthread_t thread;
	vol_trans_init(&shared);
	struct vol_trans *tr = begin(&shared, 7, 0);
	int32_t tid = tr->tid;
	assert_int_equal(pthread_create(&thread, NULL, claim_and_end, &tid), 0);
	assert_true(vol_trans_holds(&shared, 7, 0));
	vol_trans_release(&shared, tr, 0);
	pthread_join(thread, NULL);
	assert_false(vol_trans_holds(&shared, 7, 0));
	vol_trans_fini(&shared);
}

TEST_MAIN(T(a_volume_is_in_one_transaction_at_a_time), T(a_claim_finds_live_transactions_only),
	T(only_unclaimed_transactions_idle_out), T(monitor_tells_what_runs), T(a_second_call_waits_for_the_first))
