/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/fs/rig.h"

#include <string.h>

static const char *const users[] = {NULL, "alice", "bob", "admin"};

void rig_volume(struct rig *r, afs_volid id, const char *name, enum afs_voltype type)
{
	struct vs_header *h = mem_new(struct vs_header);
	struct vs_volume *v;
	h->id = h->parent = id;
	h->type = AFS_VOL_RW;
	strcpy(h->name, name);
	h->creation = SEC(1700000000);
	assert_ok(vs_volume_create(r->part, h, true, clk_wall(), &v));
	h->in_service = h->blessed = true;
	h->destroy_me = false;
	h->quota_kib = 0;
	assert_ok(vs_volume_set_header(
		v, h, VS_H_IN_SERVICE | VS_H_BLESSED | VS_H_DESTROY_ME | VS_H_QUOTA));
	struct vs_acl acl = {3, 0,
		{{AFS_ADMINISTRATORS, ACL_ALL}, {100, ACL_ALL}, {101, ACL_READ | ACL_LOOKUP}}};
	struct vs_who who = {clk_wall(), 1};
	struct vs_status st;
	assert_ok(vs_set_acl(v, (struct vs_fid){1, 1}, &acl, &who, &st));
	if (type != AFS_VOL_RW) {
		h->type = type;
		assert_ok(vs_volume_set_header(v, h, VS_H_TYPE));
	}
	vs_volume_unref(v);
	mem_free(h);
}

struct rig *rig_new(void)
{
	struct rig *r = mem_new(struct rig);
	assert_non_null(r);
	r->dir = test_scratch();
	struct vs_config store = {.durability = VS_PROCESS};
	assert_ok(vs_store_open(&store, &r->store));
	CLEANUP(str) char *part = mem_printf("%s/a", r->dir);
	assert_ok(vs_partition_attach(r->store, "a", part, &r->part));
	rig_volume(r, VOL, "test", AFS_VOL_RW);
	fake_world_init(&r->world);
	for (unsigned i = 0; i < RIG_CLIENTS; i++) {
		fake_client_add(&r->world, 0x0a000001u + i, 7001, (uint8_t)(i + 1));
		for (unsigned u = 0; u < ARRAY_SIZE(users); u++)
			r->conns[i][u].key = (i + 1ull) << 32 | u << 2;
	}
	struct fileserver_config config = {.store = r->store,
		.ports = {.people = fake_people()},
		.uuid = afs_uuid_random(),
		.allow_anonymous = true};
	struct cb_wire wire = fake_wire(&r->world);
	assert_ok(fs_new_with_wire(&config, &wire, &r->fs));
	fs_serve(r->fs);
	assert_int_equal(fileserver_services(r->fs, &r->service, 1), 1);
	return r;
}

void rig_free(struct rig *r)
{
	if (r->called)
		fake_call_fini(&r->call);
	for (unsigned i = 0; i < RIG_CLIENTS; i++)
		for (unsigned u = 0; u < ARRAY_SIZE(users); u++)
			fake_conn_close(&r->conns[i][u]);
	fileserver_free(r->fs);
	vs_store_close(r->store);
	fake_world_fini(&r->world);
	test_scratch_free(r->dir);
	mem_free(r);
}

afs_err rig_call(struct rig *r, int client, const char *user, unsigned op, const void *in)
{
	static struct rx_caller callers[ARRAY_SIZE(users)];
	unsigned u = 0;
	while (user && u < ARRAY_SIZE(users) && (!users[u] || strcmp(users[u], user) != 0))
		u++;
	assert_true(u < ARRAY_SIZE(users));
	callers[u] = fake_caller(users[u]);
	if (r->called)
		fake_call_fini(&r->call);
	r->called = true;
	fake_call_init(&r->call, &r->conns[client][u], r->world.clients[client].addr, &callers[u],
		r->service.ctx, clk_mono() + r->ahead_ns);
	r->call.pub.iface = &fs_iface;
	r->call.pub.proc = &fs_iface.procs[op];
	r->call.in = r->send;
	r->call.in_len = r->send_len;
	r->call.in_zeros = r->send_zeros;
	r->call.in_end = r->send_end;
	r->send = NULL;
	r->send_len = 0;
	r->send_zeros = 0;
	r->send_end = AFS_OK;
	memset(&r->out, 0, sizeof(r->out));
	afs_err err = r->service.handlers[op](&r->call.pub, in, &r->out);
	r->code = err == AFS_OK         ? 0
		  : err == AFS_EABORTED ? r->call.refused
					: r->service.abort_of(r->service.ctx, &r->call.pub, err);
	r->service.done(r->service.ctx, &r->call.pub, in, err, r->code, 0);
	return err;
}

static struct xdr_str str_of(const char *s) { return XDR_STR_OF(s); }

struct AFSFid rig_dir(struct rig *r, struct AFSFid dir, const char *name)
{
	assert_ok(CALL(r, A, "alice", make_dir, {.DirFid = dir, .Name = str_of(name)}));
	return r->out.make_dir.OutFid;
}

struct AFSFid rig_file(struct rig *r, struct AFSFid dir, const char *name, const char *content)
{
	assert_ok(CALL(r, A, "alice", create_file, {.DirFid = dir, .Name = str_of(name)}));
	struct AFSFid fid = r->out.create_file.OutFid;
	if (*content)
		assert_ok(rig_store(
			r, A, "alice", fid, 0, content, strlen(content), strlen(content)));
	return fid;
}

struct AFSFetchStatus rig_status(struct rig *r, struct AFSFid fid)
{
	assert_ok(CALL(r, A, "alice", fetch_status, {fid}));
	return r->out.fetch_status.OutStatus;
}

void rig_watch(struct rig *r, int c, struct AFSFid fid)
{
	assert_ok(rig_call(r, c, "alice", fs_op_fetch_status, &(struct fs_fetch_status_in){fid}));
	assert_int_equal(r->out.fetch_status.CallBack.CallBackType, CB_SHARED);
	mem_free(fake_diary(&r->world));
}

void rig_acl(struct rig *r, struct AFSFid dir, const char *text)
{
	assert_ok(CALL(r, A, "admin", store_acl,
		{.Fid = dir, .AccessList = {(const uint8_t *)text, (uint32_t)strlen(text) + 1}}));
	mem_free(fake_diary(&r->world));
}

afs_err rig_store(struct rig *r, int c, const char *user, struct AFSFid fid, uint64_t pos,
	const void *p, size_t n, uint64_t file_length)
{
	r->send = p;
	r->send_len = n;
	struct fs_store_data64_in in = {
		.Fid = fid, .Pos = pos, .Length = n, .FileLength = file_length};
	return rig_call(r, c, user, fs_op_store_data64, &in);
}

char *rig_read(struct rig *r, struct AFSFid fid)
{
	assert_ok(CALL(r, A, "alice", fetch_data64, {.Fid = fid, .Pos = 0, .Len = 1 << 30}));
	assert_true(r->call.out.len >= 8);
	uint64_t n = (uint64_t)be32_get(r->call.out.data) << 32 | be32_get(r->call.out.data + 4);
	assert_int_equal(n, r->call.out.len - 8);
	char *text = mem_alloc(n + 1, 1);
	memcpy(text, r->call.out.data + 8, n);
	return text;
}
