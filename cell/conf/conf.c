/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From a file to a struct conf: the tree of the file is walked along the rows, defaults first. */
#include "cell/conf/conf.h"

#include "cell/base/log.h"
#include "cell/base/text.h"
#include "cell/conf/schema.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMBER(s, m) ((struct s *)0)->m

/* Each row's member has the type of its kind. */
#define SECTION(path, text)
#define KEY(s, member, kind, path, dflt, min, max, choices, text)                                  \
	_Static_assert(__builtin_types_compatible_p(__typeof__(MEMBER(s, member)), TYPE_##kind)    \
			       || (CONF_##kind == CONF_ENUM && sizeof(MEMBER(s, member)) == sizeof(int)), \
		path);
#define MAP(...)
#define K(name, type, text) typedef type TYPE_##name;
CONF_KINDS(K)
#undef K
#include "cell/conf/schema.def"
#undef SECTION
#undef KEY
#undef MAP

#define SECTION(path_, text_) {.type = CONF_ROW_SECTION, .path = path_, .text = text_},
#define KEY(s, member, kind_, path_, dflt_, min_, max_, choices_, text_)                           \
	{.type = CONF_ROW_KEY, .path = path_, .text = text_, .kind = CONF_##kind_,                 \
		.offset = offsetof(struct s, member), .dflt = dflt_, .min = min_, .max = max_,     \
		.choices = choices_},
#define MAP(array, count, element, name_, kind_, path_, short_, text_, sample_)                    \
	{.type = CONF_ROW_MAP, .path = path_, .text = text_, .kind = CONF_##kind_,                 \
		.offset = offsetof(struct conf, array),                                            \
		.count_offset = offsetof(struct conf, count), .element_size = sizeof(struct element), \
		.pos_offset = offsetof(struct element, pos),                                       \
		.name_offset = offsetof(struct element, name_), .short_key = short_, .sample = sample_},
const struct conf_row conf_rows[] = {
#include "cell/conf/schema.def"
};
const size_t conf_row_count = ARRAY_SIZE(conf_rows);

/* --- rows by path -------------------------------------------------------------------------- */

static const struct conf_row *row_at(const char *path)
{
	for (size_t i = 0; i < conf_row_count; i++)
		if (strcmp(conf_rows[i].path, path) == 0)
			return &conf_rows[i];
	return NULL;
}

/* The rest of `path` after "prefix.", or NULL. */
static const char *below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);
	if (n == 0)
		return path;
	return strncmp(path, prefix, n) == 0 && path[n] == '.' ? path + n + 1 : NULL;
}

static void report_unknown(struct conf_loader *l, const char *prefix, const char *shown, const struct yaml_node *n)
{
	const char *best = NULL, *elsewhere = NULL;
	size_t best_len = 0, best_d = 4;
	for (size_t i = 0; i < conf_row_count; i++) {
		const char *rest = below(conf_rows[i].path, prefix);
		const char *last = strrchr(conf_rows[i].path, '.');
		if (!strchr(conf_rows[i].path, '*') && strcmp(last ? last + 1 : conf_rows[i].path, n->key) == 0)
			elsewhere = conf_rows[i].path;
		if (!rest || strcmp(rest, "*") == 0)
			continue;
		char word[64];
		size_t len = strcspn(rest, ".");
		snprintf(word, sizeof(word), "%.*s", (int)len, rest);
		size_t d = text_distance(word, n->key);
		if (d < best_d && d < len) {
			best_d = d;
			best = rest;
			best_len = len;
		}
	}
	char safe[80];
	log_escape(safe, sizeof(safe), n->key, strlen(n->key));
	if (best)
		conf_problem(l, n->key_pos, shown, "unknown key \"%s\"; did you mean \"%.*s\"?", safe, (int)best_len, best);
	else if (elsewhere)
		conf_problem(l, n->key_pos, shown, "unknown key \"%s\"; did you mean \"%s\"%s?", safe, elsewhere,
			strchr(elsewhere, '.') ? "" : ", outermost");
	else
		conf_problem(l, n->key_pos, shown, "unknown key \"%s\"; \"afscell config keys\" lists all", safe);
}

/* --- walking ------------------------------------------------------------------------------- */

static void defaults(struct conf_loader *l, const char *prefix, void *base);

/* Default of a row into `base`, through the same code that reads files. */
static void set_default(struct conf_loader *l, const struct conf_row *row, void *base)
{
	CLEANUP(arena) struct arena a;
	arena_init(&a, 4096);
	struct yaml_node *node = arena_alloc(&a, 1, sizeof(*node));
	if (!node) {
		l->err = AFS_ENOMEM;
		return;
	}
	node->kind = YAML_TEXT;
	node->text = row->dflt;
	if (row->dflt[0] == '[' || row->dflt[0] == '{') {
		afs_err err = yaml_read(row->dflt, strlen(row->dflt), l->file, &a, &node, l->problems);
		if (err != AFS_OK) {
			l->err = err;
			return;
		}
	}
	if (row->dflt[0] == '<')
		*(char **)(void *)((char *)base + row->offset) = mem_strdup(row->dflt);
	else if (row->kind == CONF_SIZE && !*row->dflt)
		*(int64_t *)(void *)((char *)base + row->offset) = -1; /* nothing is wished */
	else
		conf_set(l, row, row->path, base, node);
}

static void defaults(struct conf_loader *l, const char *prefix, void *base)
{
	for (size_t i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];
		if (row->type != CONF_ROW_KEY)
			continue;
		bool inside = *prefix ? strcmp(row->path, prefix) == 0 || below(row->path, prefix)
				      : !strchr(row->path, '*');
		if (inside)
			set_default(l, row, base);
	}
}

static void walk(struct conf_loader *l, const char *prefix, const char *shown, void *base,
	const struct yaml_node *node);

static void walk_element(struct conf_loader *l, const struct conf_row *map, void *element,
	const struct yaml_node *node)
{
	CLEANUP(str) char *prefix = mem_printf("%s.*", map->path);
	CLEANUP(str) char *shown = mem_printf("%s.%s", map->path, node->key);
	CLEANUP(str) char *short_path = mem_printf("%s.*.%s", map->path, map->short_key ? map->short_key : "");
	char **name = (char **)(void *)((char *)element + map->name_offset);
	struct conf_pos *pos = (struct conf_pos *)(void *)((char *)element + map->pos_offset);
	if (!prefix || !shown || !short_path || !(*name = mem_strdup(node->key))) {
		l->err = AFS_ENOMEM;
		return;
	}
	*pos = node->key_pos;
	defaults(l, prefix, element);
	if (!conf_name_ok(map->kind, node->key)) {
		char safe[80];
		conf_problem(l, node->key_pos, map->path, "expected %s, found \"%s\"", conf_expected(map->kind),
			log_escape(safe, sizeof(safe), node->key, strlen(node->key)));
	}
	const struct conf_row *whole = row_at(prefix);
	if (whole)
		conf_set(l, whole, shown, element, node);
	else if (map->short_key && node->kind == YAML_TEXT)
		conf_set(l, row_at(short_path), shown, element, node);
	else
		walk(l, prefix, shown, element, node);
}

static void walk_map(struct conf_loader *l, const struct conf_row *map, void *base, const struct yaml_node *node)
{
	char found[96];
	if (node->kind == YAML_NOTHING)
		return;
	if (node->kind != YAML_MAP) {
		conf_problem(l, node->pos, map->path, "expected a map of names, found %s", yaml_found(found, sizeof(found), node));
		return;
	}
	size_t count = 0;
	for (const struct yaml_node *c = node->first; c; c = c->next)
		count++;
	char *array = mem_alloc(count + 1, map->element_size);
	if (!array) {
		l->err = AFS_ENOMEM;
		return;
	}
	*(void **)(void *)((char *)base + map->offset) = array;
	size_t *n = (size_t *)(void *)((char *)base + map->count_offset);
	for (const struct yaml_node *c = node->first; c; c = c->next)
		walk_element(l, map, array + (*n)++ * map->element_size, c);
}

/* The children of `node` are keys below `prefix`. */
static void walk(struct conf_loader *l, const char *prefix, const char *shown, void *base,
	const struct yaml_node *node)
{
	char found[96];
	if (node->kind == YAML_NOTHING)
		return;
	if (node->kind != YAML_MAP) {
		conf_problem(l, node->pos, shown, "expected a map of keys, found %s", yaml_found(found, sizeof(found), node));
		return;
	}
	for (const struct yaml_node *c = node->first; c && l->err == AFS_OK; c = c->next) {
		CLEANUP(str) char *path = mem_printf("%s%s%s", prefix, *prefix ? "." : "", c->key);
		CLEANUP(str) char *full = mem_printf("%s%s%s", shown, *shown ? "." : "", c->key);
		if (!path || !full) {
			l->err = AFS_ENOMEM;
			return;
		}
		const struct conf_row *row = strchr(c->key, '*') || strchr(c->key, '.') ? NULL : row_at(path);
		if (row && row->type == CONF_ROW_MAP) {
			walk_map(l, row, base, c);
			continue;
		}
		if (row && row->type == CONF_ROW_KEY) {
			if (c->kind != YAML_NOTHING) /* "key:" alone keeps the default */
				conf_set(l, row, full, base, c);
			continue;
		}
		bool section = false;
		for (size_t i = 0; i < conf_row_count && !strchr(c->key, '.') && *c->key; i++)
			section = section || below(conf_rows[i].path, path);
		if (section)
			walk(l, path, full, base, c);
		else
			report_unknown(l, prefix, shown, c);
	}
}

/* --- what depends on other keys ------------------------------------------------------------- */

static bool starts(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

/* <state>/x and <run>/x become real paths. */
static void expand(struct conf_loader *l, char **s, const char *word, const char *with)
{
	if (!*s || !starts(*s, word))
		return;
	char *full = mem_printf("%s%s", with, *s + strlen(word));
	if (!full) {
		l->err = AFS_ENOMEM;
		return;
	}
	mem_free(*s);
	*s = full;
}

/* No slash at the end, none doubled, no "." between, so that paths can be compared. */
static void tidy_path(char *p)
{
	char *to = p;
	for (const char *from = p; *from;) {
		size_t skip = 0;
		if (from[0] == '/' && from[1] == '/')
			skip = 1;
		else if (from[0] == '/' && from[1] == '.' && (from[2] == '/' || from[2] == '\0'))
			skip = 2;
		else if (from[0] == '/' && from[1] == '\0' && to != p)
			skip = 1;
		if (skip == 0)
			*to++ = *from++;
		from += skip;
	}
	if (to == p && *p)
		*to++ = '/';
	*to = '\0';
}

static void finish(struct conf_loader *l, struct conf *c)
{
	if (l->err || !c->state || !c->cell)
		return;
	tidy_path(c->state);
	const char *run = strcmp(c->state, "/var/lib/afscell") == 0 ? "/run/afscell" : NULL;
	CLEANUP(str) char *own_run = mem_printf("%s/run", c->state);
	CLEANUP(str) char *upper = mem_strdup(c->cell);
	if (!own_run || !upper) {
		l->err = AFS_ENOMEM;
		return;
	}
	for (char *p = upper; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	expand(l, &c->run, "<run>", run ? run : own_run);
	if (c->realm.name && strcmp(c->realm.name, "<CELL>") == 0)
		expand(l, &c->realm.name, "<CELL>", upper);
	if (c->client.tools_port == 0)
		c->client.tools_port = c->roles.client.port <= 65535 - 8 ? c->roles.client.port + 8 : c->roles.client.port - 8;
	char **paths[] = {&c->run, &c->client.cache, &c->client.mount, &c->log.file, &c->audit.file, &c->realm.keytab, &c->realm.rxgk_keys,
		&c->realm.krb5_conf};
	if (c->partition_count == 0) {
		mem_free(c->partitions);
		c->partitions = mem_new_array(1, struct conf_partition);
		if (!c->partitions) {
			l->err = AFS_ENOMEM;
			return;
		}
		c->partition_count = 1;
		c->partitions[0].name = mem_strdup("a");
		c->partitions[0].path = mem_strdup("<state>/vice/a");
	}
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (*paths[i]) {
			expand(l, paths[i], "<state>", c->state);
			tidy_path(*paths[i]);
		}
	for (size_t i = 0; i < c->partition_count; i++)
		if (c->partitions[i].path) {
			expand(l, &c->partitions[i].path, "<state>", c->state);
			tidy_path(c->partitions[i].path);
		}
}

/* Values that could not be read have been reported; "" stands in, so that checks need no NULL. */
static bool fill_strings(struct conf *c)
{
	for (size_t i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];
		bool string = row->type == CONF_ROW_KEY && row->kind >= CONF_TEXT && row->kind < CONF_USERS;
		if (!string)
			continue;
		const char *star = strchr(row->path, '*');
		if (!star) {
			char **s = (char **)(void *)((char *)c + row->offset);
			if (!*s && !(*s = mem_strdup("")))
				return false;
			continue;
		}
		CLEANUP(str) char *map_path = mem_strndup(row->path, (size_t)(star - row->path - 1));
		const struct conf_row *map = map_path ? row_at(map_path) : NULL;
		if (!map)
			return false;
		char *array = *(char **)(void *)((char *)c + map->offset);
		size_t n = *(size_t *)(void *)((char *)c + map->count_offset);
		for (size_t k = 0; k < n; k++) {
			char **s = (char **)(void *)(array + k * map->element_size + row->offset);
			if (!*s && !(*s = mem_strdup("")))
				return false;
		}
	}
	return true;
}

void conf_free(struct conf *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < conf_row_count; i++) { /* members of elements, then the elements */
		const struct conf_row *row = &conf_rows[i];
		if (row->type != CONF_ROW_MAP)
			continue;
		char *array = *(char **)(void *)((char *)c + row->offset);
		size_t n = *(size_t *)(void *)((char *)c + row->count_offset);
		for (size_t k = 0; k < n; k++) {
			char *element = array + k * row->element_size;
			mem_free(*(char **)(void *)(element + row->name_offset));
			for (size_t j = 0; j < conf_row_count; j++)
				if (conf_rows[j].type == CONF_ROW_KEY && below(conf_rows[j].path, row->path))
					conf_unset(conf_rows[j].kind, element + conf_rows[j].offset);
		}
		mem_free(array);
	}
	for (size_t i = 0; i < conf_row_count; i++)
		if (conf_rows[i].type == CONF_ROW_KEY && !strchr(conf_rows[i].path, '*'))
			conf_unset(conf_rows[i].kind, (char *)c + conf_rows[i].offset);
	mem_free(c->file);
	mem_free(c);
}

static bool same_value(const struct conf_row *row, const struct conf *a, const struct conf *b)
{
	const char *x = (const char *)a + row->offset, *y = (const char *)b + row->offset;
	switch (row->kind) {
	case CONF_BOOL: return *(const bool *)x == *(const bool *)y;
	case CONF_PORT: return *(const uint16_t *)(const void *)x == *(const uint16_t *)(const void *)y;
	case CONF_ENUM: return *(const int *)(const void *)x == *(const int *)(const void *)y;
	case CONF_INT:
	case CONF_OCTAL:
	case CONF_SIZE: return *(const int64_t *)(const void *)x == *(const int64_t *)(const void *)y;
	case CONF_ADDRS: {
		const struct conf_addrs *p = (const void *)x, *q = (const void *)y;
		return p->n == q->n && (p->n == 0 || memcmp(p->v, q->v, p->n * sizeof(*p->v)) == 0);
	}
	case CONF_REALMS: {
		const struct conf_names *p = (const void *)x, *q = (const void *)y;
		bool same = p->n == q->n;
		for (size_t i = 0; same && i < p->n; i++)
			same = strcmp(p->v[i], q->v[i]) == 0;
		return same;
	}
	case CONF_USERS:
	case CONF_ACL: return true; /* desired state */
	default: return strcmp(*(char *const *)(const void *)x, *(char *const *)(const void *)y) == 0;
	}
}

size_t conf_fixed_differences(const struct conf *a, const struct conf *b, void (*each)(void *ctx, const char *path), void *ctx)
{
	size_t n = 0;
	for (size_t i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];
		if (row->type == CONF_ROW_KEY && !strchr(row->path, '*') && !same_value(row, a, b)) {
			each(ctx, row->path);
			n++;
		}
	}
	bool same = a->partition_count == b->partition_count;
	for (size_t i = 0; same && i < a->partition_count; i++)
		same = strcmp(a->partitions[i].name, b->partitions[i].name) == 0
		       && strcmp(a->partitions[i].path, b->partitions[i].path) == 0;
	if (!same) {
		each(ctx, "partitions");
		n++;
	}
	return n;
}

static inline void conf_cleanup(struct conf **c) { conf_free(*c); }

afs_err conf_parse(const char *text, size_t n, const char *file, struct conf **out, struct buf *problems)
{
	CLEANUP(arena) struct arena a;
	arena_init(&a, 16 << 20);
	CLEANUP(conf) struct conf *c = mem_new(struct conf);
	if (!c || !(c->file = mem_strdup(file)))
		return AFS_ENOMEM;
	struct yaml_node *root;
	TRY(yaml_read(text, n, file, &a, &root, problems));

	struct conf_loader l = {.file = file, .problems = problems};
	defaults(&l, "", c);
	walk(&l, "", "", c, root);
	finish(&l, c);
	if (l.err == AFS_OK && !fill_strings(c))
		l.err = AFS_ENOMEM;
	if (l.err == AFS_OK && l.problem_count == 0)
		conf_check(&l, c, root);
	TRY(l.err);
	if (l.problem_count)
		return AFS_ECONFIG;
	*out = TAKE(c);
	return AFS_OK;
}

afs_err conf_load(const char *file, struct conf **out, struct buf *problems)
{
	CLEANUP(fd) int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0) {
		int eno = errno;
		buf_printf(problems, "%s: cannot be read: %s\n", file, strerror(eno));
		return afs_err_from_errno(eno);
	}
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) {
		buf_printf(problems, "%s: is not a file\n", file);
		return AFS_EINVAL;
	}
	CLEANUP(buf) struct buf text = {};
	char some[8192];
	ssize_t k;
	while ((k = read(fd, some, sizeof(some))) != 0) {
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0) {
			int eno = errno;
			buf_printf(problems, "%s: cannot be read: %s\n", file, strerror(eno));
			return afs_err_from_errno(eno);
		}
		buf_put(&text, some, (size_t)k);
		if (text.len > YAML_TEXT_MAX)
			break; /* conf_parse says so */
	}
	TRY(text.err);
	/* Relative paths must hold after the process has moved to "/". */
	CLEANUP(str) char *here = *file == '/' ? mem_strdup("") : getcwd(NULL, 0);
	CLEANUP(str) char *full = here ? mem_printf("%s%s%s", here, *here ? "/" : "", file) : NULL;
	if (!full)
		return AFS_ENOMEM;
	struct buf raw = {};
	afs_err err = conf_parse(text.data ? text.data : "", text.len, full, out, &raw);
	/* ... but people are told the name that they gave */
	size_t n = strlen(full);
	for (char *p = raw.data; p && *p;) {
		size_t len = strcspn(p, "\n");
		if (strncmp(p, full, n) == 0 && p[n] == ':') {
			buf_puts(problems, file);
			buf_put(problems, p + n, len - n);
		} else {
			buf_put(problems, p, len);
		}
		buf_putc(problems, '\n');
		p += len + (p[len] == '\n');
	}
	buf_fini(&raw);
	return err;
}
