/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "cell/conf/conf.h"
#include "cell/conf/schema.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

DEFINE_CLEANUP_PTR(conf, struct conf, conf_free)

static struct conf *good(const char *text)
{
	CLEANUP(buf) struct buf problems = {};
	struct conf *c = NULL;
	afs_err err = conf_parse(text, strlen(text), "/etc/t.yaml", &c, &problems);
	if (err != AFS_OK)
		print_error("%s", problems.data ? problems.data : "");
	assert_ok(err);
	return c;
}

/* The file is refused, and the first line about it is exactly this. */
static void refused(const char *text, const char *want)
{
	CLEANUP(buf) struct buf problems = {};
	struct conf *c = NULL;
	assert_err(conf_parse(text, strlen(text), "t.yaml", &c, &problems), AFS_ECONFIG);
	assert_null(c);
	assert_non_null(problems.data);
	problems.data[strcspn(problems.data, "\n")] = '\0';
	assert_string_equal(problems.data, want);
}

static void an_empty_file_is_a_sandbox(void **state)
{
	(void)state;
	CLEANUP(conf) struct conf *c = good("");
	assert_string_equal(c->cell, "sandbox.test");
	assert_string_equal(c->realm.name, "SANDBOX.TEST");
	assert_string_equal(c->state, "/var/lib/afscell");
	assert_string_equal(c->run, "/run/afscell");
	assert_string_equal(c->client.mount, "/afs");
	assert_string_equal(c->client.cache, "/var/lib/afscell/cache");
	assert_int_equal(c->listen.n, 1);
	assert_int_equal(c->listen.v[0], 0x7f000001);
	assert_int_equal(c->roles.fileserver.port, 7000);
	assert_int_equal(c->partition_count, 1);
	assert_string_equal(c->partitions[0].name, "a");
	assert_string_equal(c->partitions[0].path, "/var/lib/afscell/vice/a");
	assert_int_equal(c->client.cache_size, 1 << 30);
	assert_string_equal(c->audit.file, "/var/lib/afscell/log/audit.jsonl");
}

static void every_key_reaches_its_member(void **state)
{
	(void)state;
	CLEANUP(conf) struct conf *c = good("cell: lab.example\n"
					    "state: /srv//./lab/.\n"
					    "listen: [10.0.0.1, 10.0.0.2]\n"
					    "durability: power\nsecurity: auth\n"
					    "realm: {name: EXAMPLE.ORG, kdc_port: 1088}\n"
					    "roles:\n  fileserver: {port: 17000}\n  volserver: {enabled: no, security: clear}\n  ptserver: {security: crypt}\n"
					    "partitions: {b: /data/b, iu: <state>/iu}\n"
					    "client: {mount: none, cache_size: 64M}\n"
					    "log: {level: debug}\naudit: {keep: 0}\n"
					    "administrators: [admin]\n"
					    "users:\n  admin: {id: 1, password: prompt}\n  bob:\n    password_file: bob.pw\n"
					    "groups:\n  staff: {id: -300, owner: admin, members: [admin, bob]}\n"
					    "volumes:\n  user.bob: {partition: iu, quota: 1G, owner: bob, mode: 750, mount: u/bob,\n"
					    "    acl: {bob: all, system:anyuser: rl}}\n"
					    "mounts: {pub: user.bob, priv: {volume: user.bob, rw: true}}\n"
					    "acls: {.: {system:anyuser: none}}\n");
	assert_string_equal(c->state, "/srv/lab");
	assert_string_equal(c->run, "/srv/lab/run");
	assert_int_equal(c->listen.n, 2);
	assert_int_equal(c->durability, CONF_DURABLE_POWER);
	assert_int_equal(c->security_least, CONF_LEVEL_AUTH);
	assert_int_equal(conf_least(c, &c->roles.ptserver), CONF_LEVEL_CRYPT);
	assert_int_equal(conf_least(c, &c->roles.volserver), CONF_LEVEL_AUTH); /* a role asks for more, never for less */
	assert_int_equal(conf_least(c, &c->roles.fileserver), CONF_LEVEL_AUTH);
	assert_string_equal(c->realm.name, "EXAMPLE.ORG");
	assert_int_equal(c->realm.kdc_port, 1088);
	assert_int_equal(c->roles.fileserver.port, 17000);
	assert_true(c->roles.fileserver.enabled);
	assert_false(c->roles.volserver.enabled);
	assert_string_equal(c->partitions[1].path, "/srv/lab/iu");
	assert_string_equal(c->client.mount, "");
	assert_int_equal(c->client.cache_size, 64 << 20);
	assert_int_equal(c->log.level, CONF_LOG_DEBUG);
	assert_int_equal(c->audit.keep, 0);
	assert_int_equal(c->user_count, 2);
	assert_int_equal(c->users[0].id, 1);
	assert_int_equal(c->users[0].password, CONF_SECRET_PROMPT);
	assert_string_equal(c->users[1].password_file, "/etc/bob.pw"); /* relative to the file */
	assert_int_equal(c->users[1].pos.line, 18);
	assert_int_equal(c->users[1].pos.column, 3);
	assert_int_equal(c->groups[0].members.n, 2);
	assert_string_equal(c->groups[0].owner, "admin");
	assert_int_equal(c->volumes[0].mode, 0750);
	assert_int_equal(c->volumes[0].quota, 1 << 30);
	assert_int_equal(c->volumes[0].acl.n, 2);
	assert_string_equal(c->volumes[0].acl.v[1].name, "system:anyuser");
	assert_string_equal(c->volumes[0].acl.v[1].rights, "rl");
	assert_string_equal(c->mounts[0].volume, "user.bob");
	assert_true(c->mounts[1].rw);
	assert_string_equal(c->acls[0].path, ".");
}

static void a_quota_that_is_not_declared_is_not_zero(void **state)
{
	(void)state;
	CLEANUP(conf) struct conf *c = good("volumes: {v: {}, w: {quota: 0}}\n");
	assert_int_equal(c->volumes[0].quota, -1);
	assert_int_equal(c->volumes[1].quota, 0);
}

static void a_key_that_is_left_empty_keeps_its_default(void **state)
{
	(void)state;
	CLEANUP(conf) struct conf *c = good("realm:\nroles:\n  client:\nusers:\nlog:\n  level:\n");
	assert_int_equal(c->log.level, CONF_LOG_INFO);
	assert_int_equal(c->user_count, 0);
}

static void unknown_keys_are_refused_with_the_nearest_one(void **state)
{
	(void)state;
	refused("cell: a.test\nrelm:\n  name: X\n", "t.yaml:2:1: unknown key \"relm\"; did you mean \"realm\"?");
	refused("roles:\n  filesever: {port: 1}\n",
		"t.yaml:2:3: roles: unknown key \"filesever\"; did you mean \"fileserver\"?");
	refused("users:\n  bob: {passwrd_file: x}\n",
		"t.yaml:2:9: users.bob: unknown key \"passwrd_file\"; did you mean \"password_file\"?");
	refused("mount: /afs\n", "t.yaml:1:1: unknown key \"mount\"; did you mean \"mounts\"?");
	refused("cache_size: 1G\n", "t.yaml:1:1: unknown key \"cache_size\"; did you mean \"client.cache_size\"?");
	refused("zzzzzzzzzz: 1\n", "t.yaml:1:1: unknown key \"zzzzzzzzzz\"; \"afscell config keys\" lists all");
	refused("roles.client.port: 1\n", "t.yaml:1:1: unknown key \"roles.client.port\"; \"afscell config keys\" lists all");
	refused("users.*: 1\n", "t.yaml:1:1: unknown key \"users.*\"; did you mean \"users\"?");
}

static void wrong_values_say_what_was_expected_and_found(void **state)
{
	(void)state;
	refused("roles:\n  client: {port: seven}\n",
		"t.yaml:2:18: roles.client.port: expected a port number from 1 to 65535, found \"seven\"");
	refused("roles: {client: {port: 0}}\n",
		"t.yaml:1:24: roles.client.port: expected a port number from 1 to 65535, found \"0\"");
	refused("roles: {client: {enabled: maybe}}\n", "t.yaml:1:27: roles.client.enabled: expected true or false, found \"maybe\"");
	refused("roles: yes\n", "t.yaml:1:8: roles: expected a map of keys, found \"yes\"");
	refused("roles: [a]\n", "t.yaml:1:8: roles: expected a map of keys, found a list");
	refused("cell: Bad.Cell\n", "t.yaml:1:7: cell: expected a cell name: a domain name in lower case, found \"Bad.Cell\"");
	refused("durability: never\n", "t.yaml:1:13: durability: expected process or power, found \"never\"");
	refused("listen: [localhost]\n",
		"t.yaml:1:10: listen: expected an IPv4 address, such as 127.0.0.1, found \"localhost\"");
	refused("client: {cache_size: 1M}\n", "t.yaml:1:22: client.cache_size: expected at least 16M, found \"1M\"");
	refused("audit: {keep: 100}\n", "t.yaml:1:15: audit.keep: expected from 0 to 99, found \"100\"");
	refused("partitions: {iv: /x}\n", "t.yaml:1:14: partitions: expected a partition name from a to iu, found \"iv\"");
	refused("users: {\"a b\": {}}\n",
		"t.yaml:1:9: users: expected a user name: letters, digits and . _ - of at most 63, found \"a b\"");
	refused("users: [bob]\n", "t.yaml:1:8: users: expected a map of names, found a list");
	refused("volumes: {v: {acl: {bob: rx}}}\n",
		"t.yaml:1:26: volumes.v.acl: expected rights (letters of rlidwka, or read, write, all, none), found \"rx\"");
	refused("volumes: {v: {mount: ../x}}\n", "t.yaml:1:22: volumes.v.mount: expected a path relative to the cell's root, "
						  "without \"..\", found \"../x\"");
	refused("volumes: {v.readonly: {}}\n",
		"t.yaml:1:11: volumes: expected a volume name: letters, digits and . _ - of at most 22, found \"v.readonly\"");
	refused("administrators: [a, a]\nusers: {a: }\n", "t.yaml:1:21: administrators: \"a\" is in this list twice");
}

static void a_password_in_the_file_is_refused_and_not_repeated(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf problems = {};
	struct conf *c = NULL;
	const char *text = "users: {bob: {password: hunter2}}\n";
	assert_err(conf_parse(text, strlen(text), "t.yaml", &c, &problems), AFS_ECONFIG);
	assert_null(strstr(problems.data, "hunter2"));
	assert_non_null(strstr(problems.data, "password_file"));
}

static void what_is_no_yaml_is_refused_with_its_place(void **state)
{
	(void)state;
	refused("cell: [a\n", "t.yaml:2:1: not YAML: while parsing a flow sequence, did not find expected ',' or ']'");
	refused("a: 1\n\tb: 2\n", "t.yaml:2:1: not YAML: while scanning a plain scalar, found a tab character that violates indentation");
	refused("cell: a.test\nstate: /a\ncell: b.test\n", "t.yaml:3:1: the key \"cell\" is here twice; the first is on line 1");
	refused("cell: &x a.test\n", "t.yaml:1:7: anchors and aliases are not understood here; write the value again");
	refused("cell: !!str a.test\n", "t.yaml:1:7: tags are not understood here");
	refused("cell: a.test\n---\ncell: b.test\n", "t.yaml:2:1: a second document begins here; a configuration is one");
	refused("[a]: 1\n", "t.yaml:1:1: expected a key, found a list or map");
	refused("cell: \"a\\0b\"\n", "t.yaml:1:7: text with a NUL inside");
	refused("a: [[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]\n", "t.yaml:1:16: lists and maps are nested too deeply");
}

static void rules_between_keys_are_kept(void **state)
{
	(void)state;
	refused("roles: {client: {port: 7000}}\n", "t.yaml:1:24: roles.client.port: port 7000 is that of roles.fileserver.port too");
	refused("realm: {mode: external}\n", "t.yaml:1:15: realm.keytab: expected the keytab with the key of afs/sandbox.test, "
					      "found nothing; an external realm needs it");
	refused("realm: {keytab: /k}\n",
		"t.yaml:1:17: realm.keytab: belongs to an external realm; set realm.mode: external, or leave it out");
	refused("state: /afs/x\n", "t.yaml: client.mount: /afs would cover the state, the cache or the run directory, which must "
				    "stay outside of AFS");
	refused("volumes: {v: {partition: b}}\n", "t.yaml:1:11: volumes: v is to be on partition \"b\", which \"partitions\" does not name");
	refused("users: {a: {id: 7}, b: {id: 7}}\n", "t.yaml:1:21: users: b has the id of a, 7");
	refused("administrators: [root]\nusers: {a: }\n", "t.yaml:1:18: administrators: root is not among \"users\"");
	refused("roles: {vlserver: {enabled: no}}\n", "t.yaml:1:29: database_servers: expected the addresses of the cell's database "
						       "servers, since roles.vlserver is off here");
	refused("listen: [0.0.0.0, 10.0.0.1]\n", "t.yaml:1:9: listen: 0.0.0.0 is every address; it stands alone");
	refused("groups: {\"a:g\": {owner: b}}\n", "t.yaml:1:10: groups: a:g must be owned by a, as its name says; found b");
	refused("roles: {fileserver: {enabled: no}, volserver: {enabled: no}}\nvolumes: {v: }\n",
		"t.yaml:2:10: volumes: needs the file server on this machine (roles.fileserver.enabled)");
}

static void all_problems_are_told_at_once(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf problems = {};
	struct conf *c = NULL;
	const char *text = "cell: X\nlisten: [y]\nbogus: 1\n";
	assert_err(conf_parse(text, strlen(text), "t.yaml", &c, &problems), AFS_ECONFIG);
	unsigned lines = 0;
	for (const char *p = problems.data; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 3);
}

static void on_difference(void *ctx, const char *path)
{
	if (ctx)
		print_error("%s\n", path);
}

static void the_sample_is_right_and_means_the_defaults(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf text = {};
	conf_write_sample(&text, NULL);
	assert_ok(text.err);
	CLEANUP(conf) struct conf *c = good(text.data), *empty = good("");
	size_t differences = conf_fixed_differences(c, empty, on_difference, "differs");
	assert_int_equal(differences, 0);
	assert_int_equal(c->administrators.n, 1);
	assert_int_equal(c->user_count, 1);
}

static void uncommenting_the_sample_keeps_it_right(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf text = {}, open = {};
	conf_write_sample(&text, NULL);
	for (const char *p = text.data; *p;) {
		size_t n = strcspn(p, "\n") + 1;
		size_t blanks = p[0] == '#' ? strspn(p + 1, " ") : 1; /* words follow one blank or three */
		bool key = blanks % 2 == 0;
		buf_put(&open, p + key, n - key);
		p += n;
	}
	CLEANUP(buf) struct buf problems = {};
	struct conf *c = NULL;
	afs_err err = conf_parse(open.data, open.len, "open.yaml", &c, &problems);
	/* The examples name a user, a group and volumes that fit together; only the key of an external
	 * realm makes no sense beside the embedded one, and it is empty. */
	if (err != AFS_OK)
		print_error("%s\n%s", problems.data ? problems.data : "", open.data);
	assert_ok(err);
	conf_free(c);
}

static void the_shipped_sample_is_what_init_writes(void **state)
{
	(void)state;
	const char *top = getenv("top_srcdir");
	CLEANUP(str) char *path = mem_printf("%s/etc/afscell.yaml", top ? top : ".");
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	static char shipped[65536];
	size_t n = fread(shipped, 1, sizeof(shipped) - 1, f);
	fclose(f);
	shipped[n] = '\0';
	CLEANUP(buf) struct buf text = {};
	conf_write_sample(&text, NULL);
	assert_string_equal(text.data, shipped);
}

static void init_values_land_in_the_sample(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf text = {};
	conf_write_sample(&text, &(struct conf_sample){"lab.example", "/srv/x # y", "none", "/a \"b"});
	CLEANUP(conf) struct conf *c = good(text.data);
	assert_string_equal(c->cell, "lab.example");
	assert_string_equal(c->realm.name, "LAB.EXAMPLE");
	assert_string_equal(c->state, "/srv/x # y");
	assert_string_equal(c->users[0].password_file, "/a \"b");
	assert_string_equal(c->client.mount, "");
}

static void differences_name_what_needs_a_restart(void **state)
{
	(void)state;
	CLEANUP(conf) struct conf *a = good(""), *b = good("roles: {client: {port: 17001}}\nlog: {level: debug}\n"
							  "listen: [10.0.0.1]\npartitions: {b: /b}\nadministrators: [x]\n");
	assert_int_equal(conf_fixed_differences(a, b, on_difference, NULL), 5);
}

static void running_out_of_memory_is_an_error_and_no_leak(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf text = {};
	conf_write_sample(&text, NULL);
	for (long n = 0;; n++) {
		CLEANUP(buf) struct buf problems = {};
		struct conf *c = NULL;
		mem_fail_after(n);
		afs_err err = conf_parse(text.data, text.len, "t.yaml", &c, &problems);
		bool failed = mem_has_failed();
		mem_fail_after(-1);
		conf_free(c);
		if (!failed) {
			assert_ok(err);
			return;
		}
		assert_true(err != AFS_OK);
	}
}

static void every_truncation_of_a_file_is_judged(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf text = {};
	conf_write_sample(&text, NULL);
	for (size_t cut = 0; cut < text.len; cut += 7) {
		CLEANUP(buf) struct buf problems = {};
		struct conf *c = NULL;
		afs_err err = conf_parse(text.data, cut, "t.yaml", &c, &problems);
		assert_true(err == AFS_OK || (err == AFS_ECONFIG && problems.len > 0));
		conf_free(c);
	}
}

static void a_missing_file_is_named(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf problems = {};
	struct conf *c = NULL;
	assert_err(conf_load("/nonexistent/x.yaml", &c, &problems), AFS_ENOENT);
	assert_string_equal(problems.data, "/nonexistent/x.yaml: cannot be read: No such file or directory\n");
}

TEST_MAIN(T(an_empty_file_is_a_sandbox), T(every_key_reaches_its_member), T(a_quota_that_is_not_declared_is_not_zero), T(a_key_that_is_left_empty_keeps_its_default),
	T(unknown_keys_are_refused_with_the_nearest_one), T(wrong_values_say_what_was_expected_and_found),
	T(a_password_in_the_file_is_refused_and_not_repeated), T(what_is_no_yaml_is_refused_with_its_place),
	T(rules_between_keys_are_kept), T(all_problems_are_told_at_once), T(the_sample_is_right_and_means_the_defaults),
	T(uncommenting_the_sample_keeps_it_right), T(the_shipped_sample_is_what_init_writes),
	T(init_values_land_in_the_sample), T(differences_name_what_needs_a_restart),
	T(running_out_of_memory_is_an_error_and_no_leak), T(every_truncation_of_a_file_is_judged), T(a_missing_file_is_named))
