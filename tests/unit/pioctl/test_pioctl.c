/* SPDX-License-Identifier: BSD-2-Clause
 * A cache manager that is a table of one token stands in for the real one. */
#include "tests/lib/test.h"

#include "client/pioctl/pioctl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct {
	bool set;
	uid_t uid;
	char cell[RX_NAME_MAX];
	struct rxkad_token kad;
	uint8_t ticket[12000];
} held;

afs_err client_token_set(struct client *c, uid_t uid, const struct client_token *t)
{
	(void)c;
	if (strcmp(t->cell, "h2.test") != 0)
		return AFS_ENOENT;
	held.set = true;
	held.uid = uid;
	snprintf(held.cell, sizeof(held.cell), "%s", t->cell);
	held.kad = t->kad;
	memcpy(held.ticket, t->kad.ticket, t->kad.ticket_len);
	held.kad.ticket = held.ticket;
	return AFS_OK;
}

afs_err client_token_get(struct client *c, uid_t uid, const char *cell, struct arena *a, struct client_token *out)
{
	(void)c, (void)a;
	if (!held.set || held.uid != uid || strcmp(cell, held.cell) != 0)
		return AFS_ENOENT;
	*out = (struct client_token){.cell = held.cell, .name = "", .kad = held.kad};
	return AFS_OK;
}

size_t client_token_list(struct client *c, uid_t uid, struct client_token_info *out, size_t cap)
{
	(void)c;
	if (!held.set || held.uid != uid)
		return 0;
	if (cap)
		snprintf(out[0].cell, sizeof(out[0].cell), "%s", held.cell);
	return 1;
}

afs_err client_token_drop(struct client *c, uid_t uid, const char *cell)
{
	(void)c;
	if (!held.set || held.uid != uid || (cell && strcmp(cell, held.cell) != 0))
		return AFS_ENOENT;
	held.set = false;
	return AFS_OK;
}

afs_err client_cell_at(struct client *c, size_t index, char name[RX_NAME_MAX], uint32_t *ips, size_t cap, size_t *n)
{
	(void)c;
	if (index)
		return AFS_ENOENT;
	snprintf(name, RX_NAME_MAX, "h2.test");
	if (cap)
		ips[0] = 0x7f000001;
	if (n)
		*n = 1;
	return AFS_OK;
}

/* What stock aklog sends, as pioctl.md §5 has it, with a ticket of eight bytes. */
static const char old_blob[] = "00000008 6182 01be 3082 0102 00000018 00000100 dad67adf57dcc846 00000064"
			       "6b0dc0da 6b0e4d6b 00000000 68322e7465737400";
static const char new_blob[] = "00000000 00000007 68322e74 65737400 00000001 00000030 00000002 00000064 00000100"
			       "dad67adf57dcc846 6b0dc0da 6b0e4d6b 00000003 00000008 618201be30820102"
			       "00000000";

/* What is about files is another file's. */
int pioctl_more(struct pioctl *x, uint32_t call) { return (void)x, (void)call, EINVAL; }
uid_t client_identity_of(struct client *c, uid_t uid, const uint32_t *groups, size_t n)
{
	return (void)c, (void)groups, (void)n, uid;
}
uint32_t client_pag_new(struct client *c, uid_t uid) { return (void)c, (void)uid, 0; }
uid_t client_pag_owner(struct client *c, uint32_t pag) { return (void)c, (void)pag, (uid_t)-1; }
const char *client_mounted_at(struct client *c) { return (void)c, NULL; }

static int run(uid_t uid, uint32_t cmd, struct xdr_bytes in, struct arena *a, struct xdr_bytes *out)
{
	struct pioctl x = {.uid = uid, .who = uid, .cmd = cmd, .in = in, .arena = a};
	int eno = pioctl_run(&x);
	*out = x.out;
	return eno;
}

static int call(uint32_t cmd, const char *hex, struct arena *a, struct xdr_bytes *out)
{
	uint8_t in[1024];
	size_t n = test_unhex(hex, in, sizeof(in));
	/* the size and direction bits of the ioctl number must not matter */
	return run(1000, 0x40180000 | cmd, (struct xdr_bytes){in, (uint32_t)n}, a, out);
}

static void assert_held(void)
{
	assert_true(held.set);
	assert_int_equal(held.uid, 1000);
	assert_int_equal(held.kad.kvno, 256);
	assert_hex(held.kad.session_key, 8, "dad67adf57dcc846");
	assert_hex(held.ticket, held.kad.ticket_len, "618201be30820102");
	assert_int_equal(held.kad.expires, SEC(0x6b0e4d6bll));
}

static void a_token_set_the_old_way_is_held(void **state)
{
	(void)state;
	CLEANUP(arena) struct arena a;
	struct xdr_bytes out;
	arena_init(&a, 1 << 20);
	memset(&held, 0, sizeof(held));
	assert_int_equal(call(PIOCTL_SETTOK, old_blob, &a, &out), 0);
	assert_held();
}

static void a_token_set_the_new_way_is_held_and_comes_back(void **state)
{
	(void)state;
	CLEANUP(arena) struct arena a;
	struct xdr_bytes out;
	arena_init(&a, 1 << 20);
	memset(&held, 0, sizeof(held));
	assert_int_equal(call(PIOCTL_SETTOK2, new_blob, &a, &out), 0);
	assert_held();
	assert_int_equal(call(PIOCTL_GETTOK2, "00000000", &a, &out), 0);
	struct xdr_bytes back = out;
	held.set = false;
	assert_int_equal(run(1000, PIOCTL_SETTOK2, back, &a, &out), 0);
	assert_held();
}

static void a_short_ticket_is_padded_when_got_the_old_way(void **state)
{
	(void)state;
	CLEANUP(arena) struct arena a;
	struct xdr_bytes out;
	arena_init(&a, 1 << 20);
	assert_int_equal(call(PIOCTL_SETTOK, old_blob, &a, &out), 0);
	assert_int_equal(call(PIOCTL_GETTOK, "", &a, &out), 0);
	assert_int_equal(out.len, 4 + 56 + 4 + 24);
	assert_int_equal(be32_get(out.p), 56);
	assert_int_equal(call(PIOCTL_GETTOK, "00000000", &a, &out), 0);
	assert_int_equal(out.len, 4 + 56 + 4 + 24 + 4 + 8);
	assert_string_equal((const char *)out.p + out.len - 8, "h2.test");
}

static void an_index_past_the_end_is_no_error_to_tools(void **state)
{
	(void)state;
	CLEANUP(arena) struct arena a;
	struct xdr_bytes out;
	arena_init(&a, 1 << 20);
	assert_int_equal(call(PIOCTL_GETTOK2, "01000000", &a, &out), EDOM);
	assert_int_equal(call(PIOCTL_GETTOK, "00000001", &a, &out), EDOM);
	assert_int_equal(call(PIOCTL_GETCELL, "00000001", &a, &out), EDOM);
}

static void malformed_blobs_are_refused(void **state)
{
	(void)state;
	CLEANUP(arena) struct arena a;
	struct xdr_bytes out;
	uint8_t in[1024];
	arena_init(&a, 1 << 20);
	size_t n = test_unhex(old_blob, in, sizeof(in));
	for (size_t cut = 0; cut < n; cut++) {
		/* a blob without its optional tail is whole */
		int want = cut >= 4 + 8 + 4 + 24 && cut <= 4 + 8 + 4 + 24 + 4 ? 0 : EINVAL;
		assert_int_equal(run(1000, PIOCTL_SETTOK, (struct xdr_bytes){in, (uint32_t)cut}, &a, &out), want);
	}
	n = test_unhex(new_blob, in, sizeof(in));
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(run(1000, PIOCTL_SETTOK2, (struct xdr_bytes){in, (uint32_t)cut}, &a, &out), EINVAL);
	assert_int_equal(call(PIOCTL_SETTOK, "00002ee1 00000000", &a, &out), EINVAL);
	assert_int_equal(call(0x5699, "", &a, &out), EINVAL);
}

static void unlog_drops_the_callers_tokens_only(void **state)
{
	(void)state;
	CLEANUP(arena) struct arena a;
	struct xdr_bytes out;
	arena_init(&a, 1 << 20);
	assert_int_equal(call(PIOCTL_SETTOK, old_blob, &a, &out), 0);
	assert_int_equal(run(1001, PIOCTL_UNPAG, (struct xdr_bytes){0}, &a, &out), 0);
	assert_true(held.set);
	assert_int_equal(call(PIOCTL_UNPAG, "", &a, &out), 0);
	assert_false(held.set);
	assert_int_equal(call(PIOCTL_GETTOK2, "", &a, &out), EDOM);
}

static void a_caller_is_who_owns_every_socket_that_may_have_sent(void **state)
{
	(void)state;
	char *dir = test_scratch();
	char *path = mem_printf("%s/udp", dir);
	FILE *f = fopen(path, "w");
	fputs("   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	      "  331: 0100007F:1B59 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1 2 0 0\n"
	      "  332: 00000000:9C41 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 1 2 0 0\n"
	      /* root's general socket and a user's of one address share a port */
	      "  333: 00000000:9C42 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1 2 0 0\n"
	      "  334: 0100007F:9C42 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 1 2 0 0\n"
	      /* as /proc/net/udp6 has them: any address, IPv4's 127.0.0.1, and one that is not IPv4 */
	      "  335: 00000000000000000000000000000000:9C43 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 1 2 0 0\n"
	      "  336: 0000000000000000FFFF00000100007F:9C44 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 1 2 0 0\n"
	      "  337: 00000000000000000000000001000000:9C45 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 1 2 0 0\n",
		f);
	fclose(f);
	static const struct {
		struct rx_addr addr;
		uid_t uid;
		enum pioctl_socket want;
	} rows[] = {
		{{0x7f000001, 0x1b59}, 1000, PIOCTL_SOCKET_HIS},
		{{0x7f000002, 0x1b59}, 1000, PIOCTL_SOCKET_NONE},
		{{0x7f000001, 0x9c41}, 1000, PIOCTL_SOCKET_HIS},
		{{0x7f000001, 0x9c41}, 1001, PIOCTL_SOCKET_OTHERS},
		{{0x7f000001, 0x9c41}, 0, PIOCTL_SOCKET_OTHERS},
		{{0x7f000001, 0x9c42}, 1000, PIOCTL_SOCKET_HIS},
		{{0x7f000001, 0x9c42}, 1001, PIOCTL_SOCKET_OTHERS},
		{{0x7f000001, 0x9c43}, 1000, PIOCTL_SOCKET_HIS},
		{{0x7f000001, 0x9c43}, 1001, PIOCTL_SOCKET_OTHERS},
		{{0x7f000001, 0x9c44}, 1000, PIOCTL_SOCKET_HIS},
		{{0x7f000002, 0x9c44}, 1000, PIOCTL_SOCKET_NONE},
		{{0x7f000001, 0x9c45}, 1000, PIOCTL_SOCKET_NONE},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(pioctl_socket_of(path, rows[i].addr, rows[i].uid), rows[i].want);
	mem_free(path);
	test_scratch_free(dir);
}

TEST_MAIN(T(a_token_set_the_old_way_is_held), T(a_token_set_the_new_way_is_held_and_comes_back),
	T(a_short_ticket_is_padded_when_got_the_old_way), T(an_index_past_the_end_is_no_error_to_tools),
	T(malformed_blobs_are_refused), T(unlog_drops_the_callers_tokens_only),
	T(a_caller_is_who_owns_every_socket_that_may_have_sent))
