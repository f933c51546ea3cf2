/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The parser and what is made from rows, with a table of its own. */
#include "tests/lib/test.h"

#include "cell/base/mem.h"
#include "cell/cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- a table ------------------------------------------------------------------------------- */

static char seen[512];

static void see(struct cli *c, const char *const *names, size_t n)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		const char *const *v;
		size_t count = cli_values(c, names[i], &v);
		k += (size_t)snprintf(seen + k, sizeof(seen) - k, "%s%s", names[i], cli_has(c, names[i]) ? "" : "-");
		for (size_t j = 0; j < count; j++)
			k += (size_t)snprintf(seen + k, sizeof(seen) - k, ":%s", v[j]);
		k += (size_t)snprintf(seen + k, sizeof(seen) - k, " ");
	}
	snprintf(seen + k, sizeof(seen) - k, "json%d", cli_wants_json(c));
}

static int run_setacl(struct cli *c)
{
	see(c, (const char *[]){"dir", "acl", "clear", "negative"}, 4);
	return 0;
}
static int run_list(struct cli *c)
{
	see(c, (const char *[]){"path", "human", "host"}, 3);
	return 0;
}
static int run_put(struct cli *c)
{
	see(c, (const char *[]){"file"}, 1);
	return 0;
}
static int run_env(struct cli *c)
{
	see(c, (const char *[]){"openafs", "force"}, 2);
	return cli_has(c, "force") ? cli_fail(c, "as %s wished", "you") : CLI_OK;
}

#define END {}
const struct cli_command cli_commands[] = {
	{"", "env", NULL, run_env, "Print the environment", "afscell env\n",
		(const struct cli_arg[]){{"openafs", 'o', CLI_OPTION, false, "DIR", "Write there"},
			{"force", 'f', CLI_FLAG, false, NULL, "Fail"}, END}, CLI_CHANGES},
	{"fs", "setacl", "sa", run_setacl, "Set access lists", "afscell fs sa . bob all\n",
		(const struct cli_arg[]){{"dir", 0, CLI_LIST, true, "DIR", "Directories"},
			{"acl", 0, CLI_LIST, true, "NAME RIGHTS", "Entries"}, {"clear", 0, CLI_FLAG, false, NULL, "Clear"},
			{"negative", 0, CLI_FLAG, false, NULL, "Negative"}, END}, CLI_CHANGES},
	{"fs", "listquota", "lq", run_list, "List quotas", "afscell fs lq\n",
		(const struct cli_arg[]){{"path", 0, CLI_LIST, false, "DIR", "Directories"},
			{"human", 0, CLI_FLAG, false, NULL, "Units"}, {"host", 0, CLI_ONE, false, "HOST", "A host"}, END}, CLI_CHANGES},
	{"fs", "listacl", "la", run_list, "List access lists", "afscell fs la\n", (const struct cli_arg[]){
		{"path", 0, CLI_LIST, false, "DIR", "Directories"}, {"human", 0, CLI_FLAG, false, NULL, "Units"},
		{"host", 0, CLI_OPTION, false, "HOST", "A host"}, END}, CLI_SHOWS},
	{"", "put", NULL, run_put, "Put a file", "afscell put x\n",
		(const struct cli_arg[]){{"file", 0, CLI_ONE, true, "FILE", "The file"}, END}, CLI_CHANGES},
	{"", "shell", NULL, run_put, "Only for shells", "afscell shell\n",
		(const struct cli_arg[]){{"file", 0, CLI_ONE, false, "FILE", "The file"}, END}, CLI_LOCAL},
};
const size_t cli_command_count = ARRAY_SIZE(cli_commands);
const struct cli_suite cli_suites[] = {{"fs", "Files"}};
const size_t cli_suite_count = 1;

static int run(const char *line)
{
	static char copy[512];
	char *argv[32];
	int argc = 0;
	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	seen[0] = '\0';
	return cli_main(argc, argv);
}

/* stdout and stderr of a run. */
static char *output_of(const char *line, int *status)
{
	char name[] = "/tmp/afscell-cli-XXXXXX";
	int fd = mkstemp(name), out = dup(1), err = dup(2);
	assert_true(fd >= 0);
	fflush(stdout);
	fflush(stderr);
	dup2(fd, 1);
	dup2(fd, 2);
	*status = run(line);
	fflush(stdout);
	fflush(stderr);
	dup2(out, 1);
	dup2(err, 2);
	close(out);
	close(err);
	unlink(name);
	off_t n = lseek(fd, 0, SEEK_END);
	char *text = mem_alloc((size_t)n + 1, 1);
	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)n, 0), n);
	close(fd);
	return text;
}

/* --- tests --------------------------------------------------------------------------------- */

static void words_fill_rows_by_position_and_the_last_list_takes_the_rest(void **state)
{
	(void)state;
	assert_int_equal(run("afscell fs setacl d bob rl al all -clear"), 0);
	assert_string_equal(seen, "dir:d acl:bob:rl:al:all clear negative- json0");
}

static void a_list_by_name_takes_words_up_to_the_next_name(void **state)
{
	(void)state;
	assert_int_equal(run("afscell fs sa -dir a b -acl bob rl -neg"), 0);
	assert_string_equal(seen, "dir:a:b acl:bob:rl clear- negative json0");
}

static void names_and_commands_may_be_cut_while_they_stay_clear(void **state)
{
	(void)state;
	assert_int_equal(run("afscell fs listq -hu -p x --json"), 0);
	assert_string_equal(seen, "path:x human host- json1");
	assert_int_equal(run("afscell fs list x"), 2);
	assert_int_equal(run("afscell fs lq -h x"), 2);
	assert_int_equal(run("afscell fs lq -ho x"), 0);
	assert_string_equal(seen, "path- human- host:x json0");
}

static void one_dash_or_two_letters_and_equals_signs_are_all_read(void **state)
{
	(void)state;
	assert_int_equal(run("afscell env --openafs=/x"), 0);
	assert_string_equal(seen, "openafs:/x force- json0");
	assert_int_equal(run("afscell env -o /y"), 0);
	assert_string_equal(seen, "openafs:/y force- json0");
	assert_int_equal(run("afscell env -openafs /z"), 0);
	assert_string_equal(seen, "openafs:/z force- json0");
}

static void dashes_alone_and_negative_numbers_are_values(void **state)
{
	(void)state;
	assert_int_equal(run("afscell env -o -"), 0);
	assert_string_equal(seen, "openafs:- force- json0");
	assert_int_equal(run("afscell fs lq -101 -- -x"), 0);
	assert_string_equal(seen, "path:-101 human- host:-x json0");
}

static void the_program_answers_to_the_name_of_a_suite(void **state)
{
	(void)state;
	assert_int_equal(run("/usr/bin/fs la x"), 0);
	assert_string_equal(seen, "path:x human- host- json0");
}

static void what_cannot_be_understood_is_status_2(void **state)
{
	(void)state;
	static const char *const lines[] = {"afscell", "afscell bogus", "afscell fs", "afscell fs bogus", "afscell env x",
		"afscell env --bogus", "afscell env -o", "afscell env -o a -o b", "afscell env --force=1", "afscell fs sa d",
		"afscell fs sa -dir", "afscell env -o --json"};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		int status;
		CLEANUP(str) char *text = output_of(lines[i], &status);
		assert_int_equal(status, 2);
		assert_true(strlen(text) > 10);
		assert_string_equal(seen, "");
	}
}

static void a_near_miss_is_named(void **state)
{
	(void)state;
	int status;
	CLEANUP(str) char *text = output_of("afscell evn", &status);
	assert_string_equal(text, "afscell: unknown command \"evn\"; did you mean \"env\"?\n");
}

static void a_failure_is_status_1_and_says_who_failed(void **state)
{
	(void)state;
	int status;
	CLEANUP(str) char *text = output_of("afscell env -f", &status);
	assert_int_equal(status, 1);
	assert_string_equal(text, "afscell env: as you wished\n");
}

static void help_shows_every_argument_and_the_examples(void **state)
{
	(void)state;
	int status;
	CLEANUP(str) char *text = output_of("afscell fs setacl --help", &status);
	assert_int_equal(status, 0);
	assert_non_null(strstr(text, "Usage: afscell fs setacl DIR ... NAME RIGHTS ... [-clear] [-negative]"));
	assert_non_null(strstr(text, "Also:  sa"));
	assert_non_null(strstr(text, "  afscell fs sa . bob all\n"));
	CLEANUP(str) char *top = output_of("afscell --help", &status);
	assert_non_null(strstr(top, "  env "));
	assert_non_null(strstr(top, "  fs "));
	CLEANUP(str) char *suite = output_of("afscell fs help", &status);
	assert_non_null(strstr(suite, "listquota"));
}

/* --- called by a program ------------------------------------------------------------------- */

static int called(const char *command, const char *args, struct cli_call *call)
{
	*call = (struct cli_call){.command = command};
	json_t *o = args ? json_loads(args, 0, NULL) : NULL;
	assert_true(o || !args);
	call->args = o;
	seen[0] = '\0';
	int status = cli_call(call);
	json_decref(o);
	json_decref(call->result);
	return status;
}

static void a_program_gives_arguments_as_json(void **state)
{
	(void)state;
	struct cli_call call;
	assert_int_equal(called("fs setacl", "{\"dir\": \"a b\", \"acl\": [\"bob\", 7], \"clear\": true, \"negative\": false}", &call), 0);
	assert_string_equal(seen, "dir:a b acl:bob:7 clear negative- json1");
	assert_null(call.text);
	assert_int_equal(called("fs listacl", NULL, &call), 0);
}

static void a_program_is_told_what_it_got_wrong(void **state)
{
	(void)state;
	static const struct {
		const char *command, *args, *text;
	} wrong[] = {{"fs sa", "{}", "no command"}, {"setacl", "{}", "no command"}, {"", "{}", "no command"}, {"shell", "{}", "no command"},
		{"fs setacl", "{\"di\": \"x\"}", "unknown option di"}, {"fs setacl", "{\"dir\": \"x\"}", "is missing"},
		{"fs setacl", "{\"dir\": {}}", "expected text"}, {"fs setacl", "{\"dir\": [[]]}", "expected text"},
		{"fs setacl", "[1]", "no object"}, {"fs listquota", "{\"human\": \"yes\"}", "true or false"},
		{"fs listquota", "{\"host\": [\"a\", \"b\"]}", "takes one value"}, {"put", "{\"file\": \"/etc/shadow\"}", "only a shell"}};
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct cli_call call;
		assert_int_equal(called(wrong[i].command, wrong[i].args, &call), CLI_USAGE);
		assert_non_null(call.text);
		assert_non_null(strstr(call.text, wrong[i].text));
		assert_string_equal(seen, "");
		mem_free(call.text);
	}
}

static void a_program_gets_the_words_of_a_failure(void **state)
{
	(void)state;
	struct cli_call call;
	assert_int_equal(called("env", "{\"force\": true}", &call), CLI_FAILED);
	assert_string_equal(call.text, "as you wished\n");
	mem_free(call.text);
}

static void the_table_tells_all_but_what_is_for_shells(void **state)
{
	(void)state;
	json_t *all = cli_table_json(false);
	assert_int_equal(json_array_size(all), cli_command_count - 1);
	json_t *la = json_array_get(all, 3);
	assert_string_equal(json_string_value(json_object_get(la, "name")), "listacl");
	assert_true(json_is_false(json_object_get(la, "changes")));
	assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(la, "args"), 0), "kind")), "list");
	json_decref(all);
}

TEST_MAIN(T(words_fill_rows_by_position_and_the_last_list_takes_the_rest),
	T(a_list_by_name_takes_words_up_to_the_next_name), T(names_and_commands_may_be_cut_while_they_stay_clear),
	T(one_dash_or_two_letters_and_equals_signs_are_all_read), T(dashes_alone_and_negative_numbers_are_values),
	T(the_program_answers_to_the_name_of_a_suite), T(what_cannot_be_understood_is_status_2), T(a_near_miss_is_named),
	T(a_failure_is_status_1_and_says_who_failed), T(help_shows_every_argument_and_the_examples),
	T(a_program_gives_arguments_as_json), T(a_program_is_told_what_it_got_wrong), T(a_program_gets_the_words_of_a_failure),
	T(the_table_tells_all_but_what_is_for_shells))
