/* SPDX-License-Identifier: BSD-2-Clause */
#include "cell/conf/yaml.h"

#include "cell/base/log.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

struct reader {
	yaml_parser_t parser;
	const char *file;
	struct arena *arena;
	struct buf *problems;
	unsigned nodes;
};

static struct conf_pos pos_of(yaml_mark_t m) { return (struct conf_pos){(int)m.line + 1, (int)m.column + 1}; }

static afs_err refuse(struct reader *r, struct conf_pos pos, const char *what)
{
	buf_printf(r->problems, "%s:%d:%d: %s\n", r->file, pos.line, pos.column, what);
	return AFS_ECONFIG;
}

static afs_err next_event(struct reader *r, yaml_event_t *ev)
{
	if (yaml_parser_parse(&r->parser, ev))
		return AFS_OK;
	if (r->parser.error == YAML_MEMORY_ERROR)
		return AFS_ENOMEM;
	yaml_mark_t m = r->parser.problem_mark;
	const char *context = r->parser.context;
	char text[256];
	if (r->parser.error == YAML_READER_ERROR)
		snprintf(text, sizeof(text), "not YAML: %s at byte %zu", r->parser.problem, r->parser.problem_offset);
	else
		snprintf(text, sizeof(text), "not YAML: %s%s%s", context ? context : "", context ? ", " : "",
			r->parser.problem ? r->parser.problem : "cannot be read");
	return refuse(r, pos_of(m), text);
}

static afs_err read_node(struct reader *r, yaml_event_t *ev, unsigned depth, struct yaml_node **out);

static bool is_nothing(const yaml_event_t *ev)
{
	const char *s = (const char *)ev->data.scalar.value;
	return ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE
	       && (!*s || strcmp(s, "~") == 0 || strcmp(s, "null") == 0);
}

static afs_err read_scalar(struct reader *r, const yaml_event_t *ev, struct yaml_node *node)
{
	size_t n = ev->data.scalar.length;
	if (memchr(ev->data.scalar.value, 0, n))
		return refuse(r, node->pos, "text with a NUL inside");
	node->kind = is_nothing(ev) ? YAML_NOTHING : YAML_TEXT;
	node->text = arena_strndup(r->arena, (const char *)ev->data.scalar.value, n);
	return node->text ? AFS_OK : AFS_ENOMEM;
}

static afs_err read_children(struct reader *r, bool map, unsigned depth, struct yaml_node *parent)
{
	struct yaml_node **tail = &parent->first;
	for (;;) {
		yaml_event_t ev;
		TRY(next_event(r, &ev));
		if (ev.type == YAML_SEQUENCE_END_EVENT || ev.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&ev);
			return AFS_OK;
		}
		const char *key = NULL;
		struct conf_pos key_pos = pos_of(ev.start_mark);
		if (map) {
			struct yaml_node *k = NULL;
			TRY(read_node(r, &ev, depth + 1, &k));
			if (k->kind != YAML_TEXT && k->kind != YAML_NOTHING)
				return refuse(r, key_pos, "expected a key, found a list or map");
			key = k->text;
			for (const struct yaml_node *c = parent->first; c; c = c->next)
				if (strcmp(c->key, key) == 0) {
					buf_printf(r->problems, "%s:%d:%d: the key \"%s\" is here twice; the first is on line %d\n",
						r->file, key_pos.line, key_pos.column, key, c->key_pos.line);
					return AFS_ECONFIG;
				}
			TRY(next_event(r, &ev));
		}
		TRY(read_node(r, &ev, depth + 1, tail));
		(*tail)->key = key;
		(*tail)->key_pos = key_pos;
		tail = &(*tail)->next;
	}
}

/* The node that begins with `ev`, which is deleted. */
static afs_err read_node(struct reader *r, yaml_event_t *ev, unsigned depth, struct yaml_node **out)
{
	struct conf_pos pos = pos_of(ev->start_mark);
	afs_err err = AFS_OK;
	struct yaml_node *node = arena_alloc(r->arena, 1, sizeof(*node));
	if (!node)
		err = AFS_ENOMEM;
	else if (++r->nodes > YAML_NODES_MAX)
		err = refuse(r, pos, "too many values in this file");
	else if (depth > YAML_DEPTH_MAX)
		err = refuse(r, pos, "lists and maps are nested too deeply");
	else if (ev->type == YAML_ALIAS_EVENT || (ev->type == YAML_SCALAR_EVENT && ev->data.scalar.anchor)
		 || (ev->type == YAML_SEQUENCE_START_EVENT && ev->data.sequence_start.anchor)
		 || (ev->type == YAML_MAPPING_START_EVENT && ev->data.mapping_start.anchor))
		err = refuse(r, pos, "anchors and aliases are not understood here; write the value again");
	else if ((ev->type == YAML_SCALAR_EVENT && ev->data.scalar.tag)
		 || (ev->type == YAML_SEQUENCE_START_EVENT && ev->data.sequence_start.tag)
		 || (ev->type == YAML_MAPPING_START_EVENT && ev->data.mapping_start.tag))
		err = refuse(r, pos, "tags are not understood here");
	if (err != AFS_OK) {
		yaml_event_delete(ev);
		return err;
	}

	node->pos = pos;
	if (ev->type == YAML_SCALAR_EVENT) {
		err = read_scalar(r, ev, node);
		yaml_event_delete(ev);
	} else {
		bool map = ev->type == YAML_MAPPING_START_EVENT;
		yaml_event_delete(ev);
		node->kind = map ? YAML_MAP : YAML_LIST;
		err = read_children(r, map, depth, node);
	}
	*out = node;
	return err;
}

static afs_err read_document(struct reader *r, struct yaml_node **out)
{
	yaml_event_t ev;
	struct yaml_node *root = arena_alloc(r->arena, 1, sizeof(*root));
	if (!root)
		return AFS_ENOMEM;
	root->pos = (struct conf_pos){1, 1};
	unsigned documents = 0;
	for (;;) {
		TRY(next_event(r, &ev));
		yaml_event_type_t type = ev.type;
		struct conf_pos pos = pos_of(ev.start_mark);
		if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT
			&& type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT) {
			TRY(read_node(r, &ev, 0, &root));
			continue;
		}
		yaml_event_delete(&ev);
		if (type == YAML_DOCUMENT_START_EVENT && ++documents > 1)
			return refuse(r, pos, "a second document begins here; a configuration is one");
		if (type == YAML_STREAM_END_EVENT) {
			*out = root;
			return AFS_OK;
		}
	}
}

afs_err yaml_read(const char *text, size_t n, const char *file, struct arena *arena,
	struct yaml_node **out, struct buf *problems)
{
	struct reader r = {.file = file, .arena = arena, .problems = problems};
	if (n > YAML_TEXT_MAX) {
		buf_printf(problems, "%s: larger than %d bytes, which no configuration is\n", file, YAML_TEXT_MAX);
		return AFS_ECONFIG;
	}
	if (!yaml_parser_initialize(&r.parser))
		return AFS_ENOMEM;
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	afs_err err = read_document(&r, out);
	yaml_parser_delete(&r.parser);
	return err;
}

const struct yaml_node *yaml_child(const struct yaml_node *map, const char *key)
{
	if (map && map->kind == YAML_MAP)
		for (const struct yaml_node *c = map->first; c; c = c->next)
			if (strcmp(c->key, key) == 0)
				return c;
	return NULL;
}

const char *yaml_found(char *out, size_t size, const struct yaml_node *node)
{
	switch (node->kind) {
	case YAML_NOTHING: return "nothing";
	case YAML_LIST: return "a list";
	case YAML_MAP: return "a map";
	case YAML_TEXT: break;
	}
	char safe[80];
	snprintf(out, size, "\"%s\"", log_escape(safe, sizeof(safe), node->text, strlen(node->text)));
	return out;
}
