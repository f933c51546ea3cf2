/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One value: from a node of the file into the member of its row, by kind.  Whatever is not what the
 * row wants is reported with its place; nothing is guessed. */
#include "cell/conf/schema.h"

#include "cell/base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PROBLEMS_MAX = 20, LIST_MAX = 10000, NAME_MAX_ = 63, VOLNAME_MAX = 22 };

const char *conf_expected(enum conf_kind kind)
{
	static const char *const text[] = {
#define K(name, type, text) [CONF_##name] = text,
		CONF_KINDS(K)
#undef K
	};
	return text[kind];
}

void conf_problem(struct conf_loader *l, struct conf_pos pos, const char *path, const char *fmt, ...)
{
	l->problem_count++;
	if (l->problem_count > PROBLEMS_MAX)
		return;
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_printf(l->problems, "%s:", l->file);
	if (pos.line)
		buf_printf(l->problems, "%d:%d:", pos.line, pos.column);
	buf_printf(l->problems, " %s%s%s\n", path, *path ? ": " : "", text);
	if (l->problem_count == PROBLEMS_MAX)
		buf_printf(l->problems, "%s: more problems follow; these first\n", l->file);
}

/* --- names --------------------------------------------------------------------------------- */

static bool all_of(const char *s, const char *more, size_t max)
{
	size_t n = 0;
	for (; *s; s++, n++)
		if (!isalnum((unsigned char)*s) && !strchr(more, *s))
			return false;
	return n >= 1 && n <= max;
}

static bool is_domain(const char *s, bool upper)
{
	size_t n = strlen(s), label = 0;
	if (n == 0 || n > NAME_MAX_)
		return false;
	for (; *s; s++) {
		if (*s == '.') {
			if (label == 0)
				return false;
			label = 0;
			continue;
		}
		if (!isalnum((unsigned char)*s) && *s != '-' && !(upper && *s == '_'))
			return false;
		if (upper ? islower((unsigned char)*s) : isupper((unsigned char)*s))
			return false;
		if (*s == '-' && label == 0)
			return false;
		label++;
	}
	return label > 0;
}

/* a ... z, aa ... iu: the partition ids 0 ... 254 */
static bool is_partition(const char *s)
{
	size_t n = strlen(s);
	if (n < 1 || n > 2 || !islower((unsigned char)s[0]) || (n == 2 && !islower((unsigned char)s[1])))
		return false;
	int id = n == 1 ? s[0] - 'a' : 26 + (s[0] - 'a') * 26 + s[1] - 'a';
	return id <= 254;
}

static bool is_group(const char *s)
{
	const char *colon = strchr(s, ':');
	if (!colon)
		return all_of(s, "._-", NAME_MAX_);
	char owner[NAME_MAX_ + 1];
	size_t n = (size_t)(colon - s);
	if (n == 0 || n > NAME_MAX_ || strlen(s) > NAME_MAX_)
		return false;
	memcpy(owner, s, n);
	owner[n] = '\0';
	return all_of(owner, "._-", NAME_MAX_) && all_of(colon + 1, "._-", NAME_MAX_);
}

/* Components of 1 to 255 bytes, none "..", not absolute; "." alone is the root itself. */
static bool is_relpath(const char *s)
{
	if (strcmp(s, ".") == 0)
		return true;
	if (!*s || *s == '/' || strlen(s) > 1024)
		return false;
	for (const char *p = s; *p;) {
		size_t n = strcspn(p, "/");
		if (n == 0 || n > 255 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n;
		if (*p == '/' && !*++p)
			return false;
	}
	return true;
}

static bool has_control(const char *s)
{
	for (; *s; s++)
		if (iscntrl((unsigned char)*s))
			return true;
	return false;
}

bool conf_name_ok(enum conf_kind kind, const char *s)
{
	switch (kind) {
	case CONF_CELL: return is_domain(s, false);
	case CONF_REALM: return is_domain(s, true);
	case CONF_PARTITION: return is_partition(s);
	case CONF_USER:
	case CONF_USERNAME: return all_of(s, "._-", NAME_MAX_) && strcmp(s, "anonymous") != 0;
	case CONF_GROUP: return is_group(s);
	case CONF_PRNAME: return is_group(s) || strncmp(s, "system:", 7) == 0;
	case CONF_VOLUME: {
		size_t n = strlen(s);
		/* all digits would be an id, and these endings name a volume's copies */
		bool copy = (n > 9 && strcmp(s + n - 9, ".readonly") == 0)
			    || (n > 7 && strcmp(s + n - 7, ".backup") == 0);
		return all_of(s, "._-", VOLNAME_MAX) && strspn(s, "0123456789") != n && !copy;
	}
	case CONF_RELPATH: return is_relpath(s) && !has_control(s);
	default: return true;
	}
}

/* Rights in words, or letters of rlidwka. */
static bool is_rights(const char *s)
{
	static const char *const words[] = {"all", "none", "read", "write"};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(s, words[i]) == 0)
			return true;
	return *s && strspn(s, "rlidwka") == strlen(s);
}

/* --- values -------------------------------------------------------------------------------- */

static void wrong(struct conf_loader *l, const struct conf_row *row, const char *path, const struct yaml_node *n)
{
	char found[96];
	conf_problem(l, n->pos, path, "expected %s, found %s", conf_expected(row->kind), yaml_found(found, sizeof(found), n));
}

static void set_text(struct conf_loader *l, char **member, const char *text)
{
	char *s = mem_strdup(text);
	if (!s)
		l->err = AFS_ENOMEM;
	else
		*member = s;
}

static void set_number(struct conf_loader *l, const struct conf_row *row, const char *path, int64_t *member,
	const struct yaml_node *n)
{
	int64_t v = 0;
	bool ok = n->kind == YAML_TEXT;
	if (ok && row->kind == CONF_SIZE) {
		ok = text_size(n->text, &v);
	} else if (ok && row->kind == CONF_OCTAL) {
		ok = *n->text && strlen(n->text) <= 6 && strspn(n->text, "01234567") == strlen(n->text);
		v = ok ? strtol(n->text, NULL, 8) : 0;
	} else if (ok) {
		ok = text_int(n->text, &v);
	}
	if (!ok) {
		wrong(l, row, path, n);
		return;
	}
	if (v < row->min || v > row->max) {
		char a[24], b[24], found[96];
		const char *min = text_size_of(a, row->min), *max = text_size_of(b, row->max);
		if (row->kind != CONF_SIZE) {
			snprintf(a, sizeof(a), "%" PRId64, row->min);
			snprintf(b, sizeof(b), "%" PRId64, row->max);
		}
		if (row->max == INT64_MAX)
			conf_problem(l, n->pos, path, "expected at least %s, found %s", min,
				yaml_found(found, sizeof(found), n));
		else
			conf_problem(l, n->pos, path, "expected from %s to %s, found %s", min, max,
				yaml_found(found, sizeof(found), n));
		return;
	}
	*member = v;
}

static void set_bool(struct conf_loader *l, const struct conf_row *row, const char *path, bool *member,
	const struct yaml_node *n)
{
	static const char *const yes[] = {"true", "yes", "on", "True", "Yes", "On"};
	static const char *const no[] = {"false", "no", "off", "False", "No", "Off"};
	for (size_t i = 0; n->kind == YAML_TEXT && i < ARRAY_SIZE(yes); i++)
		if (strcmp(n->text, yes[i]) == 0 || strcmp(n->text, no[i]) == 0) {
			*member = strcmp(n->text, yes[i]) == 0;
			return;
		}
	wrong(l, row, path, n);
}

static void set_enum(struct conf_loader *l, const struct conf_row *row, const char *path, int *member,
	const struct yaml_node *n)
{
	int i = 0;
	for (const char *p = row->choices; n->kind == YAML_TEXT; i++) {
		size_t len = strcspn(p, "|");
		if (strlen(n->text) == len && strncmp(p, n->text, len) == 0) {
			*member = i;
			return;
		}
		if (!p[len])
			break;
		p += len + 1;
	}
	char found[96], words[128];
	size_t k = 0;
	for (const char *p = row->choices; *p && k + 5 < sizeof(words); p++) {
		if (*p == '|')
			k += (size_t)snprintf(words + k, sizeof(words) - k, " or ");
		else
			words[k++] = *p;
	}
	words[k] = '\0';
	if (strcmp(row->path, "users.*.password") == 0) { /* never repeat what may be one */
		conf_problem(l, n->pos, path, "expected %s; a password itself does not belong in this file: "
					     "name a file (password_file) or a variable (password_env)", words);
		return;
	}
	conf_problem(l, n->pos, path, "expected %s, found %s", words, yaml_found(found, sizeof(found), n));
}

static void set_string(struct conf_loader *l, const struct conf_row *row, const char *path, char **member,
	const struct yaml_node *n)
{
	if (n->kind != YAML_TEXT || has_control(n->text)) {
		wrong(l, row, path, n);
		return;
	}
	bool computed = *row->dflt == '<' && strcmp(n->text, row->dflt) == 0; /* as the sample writes it */
	if (*n->text && !computed && !conf_name_ok(row->kind, n->text)) {
		wrong(l, row, path, n);
		return;
	}
	if (!*n->text && (row->kind == CONF_CELL || row->kind == CONF_REALM)) {
		wrong(l, row, path, n);
		return;
	}
	if (row->kind == CONF_MOUNT && strcmp(n->text, "none") == 0) {
		set_text(l, member, "");
		return;
	}
	if ((row->kind == CONF_FILEPATH || row->kind == CONF_MOUNT) && *n->text && n->text[0] != '/'
		&& n->text[0] != '<') {
		/* relative to the file that says it */
		const char *slash = strrchr(l->file, '/');
		char *s = mem_printf("%.*s/%s", slash ? (int)(slash - l->file) : 1, slash ? l->file : ".", n->text);
		if (!s)
			l->err = AFS_ENOMEM;
		*member = s;
		return;
	}
	set_text(l, member, n->text);
}

static size_t count_children(const struct yaml_node *n)
{
	size_t k = 0;
	for (const struct yaml_node *c = n->first; c; c = c->next)
		k++;
	return k;
}

static void set_names(struct conf_loader *l, const struct conf_row *row, const char *path,
	struct conf_names *member, const struct yaml_node *n)
{
	if (n->kind != YAML_LIST || count_children(n) > LIST_MAX) {
		wrong(l, row, path, n);
		return;
	}
	member->v = mem_new_array(count_children(n) + 1, char *);
	if (!member->v) {
		l->err = AFS_ENOMEM;
		return;
	}
	for (const struct yaml_node *c = n->first; c; c = c->next) {
		char found[96];
		if (c->kind != YAML_TEXT || !conf_name_ok(row->kind == CONF_REALMS ? CONF_REALM : CONF_USER, c->text)) {
			conf_problem(l, c->pos, path, "expected %s, found %s", conf_expected(row->kind == CONF_REALMS ? CONF_REALM : CONF_USER),
				yaml_found(found, sizeof(found), c));
			continue;
		}
		bool twice = false;
		for (size_t i = 0; i < member->n; i++)
			twice = twice || strcmp(member->v[i], c->text) == 0;
		if (twice)
			conf_problem(l, c->pos, path, "\"%s\" is in this list twice", c->text);
		else if ((member->v[member->n] = mem_strdup(c->text)))
			member->n++;
		else
			l->err = AFS_ENOMEM;
	}
}

static void set_addrs(struct conf_loader *l, const struct conf_row *row, const char *path,
	struct conf_addrs *member, const struct yaml_node *n)
{
	const struct yaml_node *first = n->kind == YAML_TEXT ? n : n->first; /* one address needs no list */
	if (n->kind != YAML_TEXT && n->kind != YAML_LIST) {
		wrong(l, row, path, n);
		return;
	}
	size_t count = n->kind == YAML_TEXT ? 1 : count_children(n);
	if (count > 16) {
		conf_problem(l, n->pos, path, "expected at most 16 addresses, found %zu", count);
		return;
	}
	member->v = mem_new_array(count + 1, uint32_t);
	if (!member->v) {
		l->err = AFS_ENOMEM;
		return;
	}
	for (const struct yaml_node *c = first; count; c = c->next, count--) {
		char found[96];
		uint32_t ip;
		if (c->kind == YAML_TEXT && text_ipv4(c->text, &ip))
			member->v[member->n++] = ip;
		else
			conf_problem(l, c->pos, path, "expected an IPv4 address, such as 127.0.0.1, found %s",
				yaml_found(found, sizeof(found), c));
	}
}

static void set_acl(struct conf_loader *l, const struct conf_row *row, const char *path,
	struct conf_acl *member, const struct yaml_node *n)
{
	if (n->kind == YAML_NOTHING)
		return;
	if (n->kind != YAML_MAP) {
		wrong(l, row, path, n);
		return;
	}
	size_t count = count_children(n);
	if (count > 20) {
		conf_problem(l, n->pos, path, "expected at most 20 entries, found %zu", count);
		return;
	}
	member->v = mem_new_array(count + 1, struct conf_ace);
	if (!member->v) {
		l->err = AFS_ENOMEM;
		return;
	}
	for (const struct yaml_node *c = n->first; c; c = c->next) {
		char found[96];
		struct conf_ace *ace = &member->v[member->n];
		if (!conf_name_ok(CONF_PRNAME, c->key))
			conf_problem(l, c->key_pos, path, "expected %s, found \"%s\"", conf_expected(CONF_PRNAME), c->key);
		else if (c->kind != YAML_TEXT || !is_rights(c->text))
			conf_problem(l, c->pos, path, "expected rights (letters of rlidwka, or read, write, all, none), found %s",
				yaml_found(found, sizeof(found), c));
		else {
			*ace = (struct conf_ace){c->key_pos, mem_strdup(c->key), mem_strdup(c->text)};
			member->n++;
			if (!ace->name || !ace->rights)
				l->err = AFS_ENOMEM;
		}
	}
}

void conf_unset(enum conf_kind kind, void *member)
{
	switch (kind) {
	case CONF_BOOL:
	case CONF_INT:
	case CONF_OCTAL:
	case CONF_PORT:
	case CONF_SIZE:
	case CONF_ENUM: return;
	case CONF_REALMS:
	case CONF_USERS: {
		struct conf_names *names = member;
		for (size_t i = 0; i < names->n; i++)
			mem_free(names->v[i]);
		mem_free(names->v);
		*names = (struct conf_names){};
		return;
	}
	case CONF_ADDRS: {
		struct conf_addrs *addrs = member;
		mem_free(addrs->v);
		*addrs = (struct conf_addrs){};
		return;
	}
	case CONF_ACL: {
		struct conf_acl *acl = member;
		for (size_t i = 0; i < acl->n; i++) {
			mem_free(acl->v[i].name);
			mem_free(acl->v[i].rights);
		}
		mem_free(acl->v);
		*acl = (struct conf_acl){};
		return;
	}
	default: {
		char **s = member;
		mem_free(*s);
		*s = NULL;
	}
	}
}

void conf_set(struct conf_loader *l, const struct conf_row *row, const char *path, void *base,
	const struct yaml_node *node)
{
	void *member = (char *)base + row->offset;
	conf_unset(row->kind, member);
	switch (row->kind) {
	case CONF_BOOL: set_bool(l, row, path, member, node); break;
	case CONF_INT:
	case CONF_OCTAL:
	case CONF_SIZE: set_number(l, row, path, member, node); break;
	case CONF_PORT: {
		int64_t port = 0;
		char found[96];
		if (node->kind == YAML_TEXT && text_int(node->text, &port) && port >= 1 && port <= 65535)
			*(uint16_t *)member = (uint16_t)port;
		else
			conf_problem(l, node->pos, path, "expected %s, found %s", conf_expected(CONF_PORT),
				yaml_found(found, sizeof(found), node));
		break;
	}
	case CONF_ENUM: set_enum(l, row, path, member, node); break;
	case CONF_REALMS:
	case CONF_USERS: set_names(l, row, path, member, node); break;
	case CONF_ADDRS: set_addrs(l, row, path, member, node); break;
	case CONF_ACL: set_acl(l, row, path, member, node); break;
	default: set_string(l, row, path, member, node);
	}
}
