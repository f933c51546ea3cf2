/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A YAML document as a small tree that remembers where everything stood.  Read through libyaml's
 * events; bounded in size, depth and nodes.  Anchors, aliases, tags and further documents are
 * refused: a configuration says what it means in place. */
#pragma once
#include "cell/base/buf.h"
#include "cell/base/mem.h"
#include "cell/conf/conf.h"

enum yaml_kind { YAML_NOTHING, YAML_TEXT, YAML_LIST, YAML_MAP };
struct yaml_node {
	enum yaml_kind kind;
	struct conf_pos pos;
	const char *text;          /* of YAML_TEXT */
	struct yaml_node *first;   /* children of a list or map, in order */
	struct yaml_node *next;
	const char *key;           /* as the child of a map */
	struct conf_pos key_pos;
};

enum { YAML_TEXT_MAX = 1 << 20, YAML_DEPTH_MAX = 12, YAML_NODES_MAX = 20000 };

/* AFS_ECONFIG: not YAML, or one of the refusals above; a line about it is in `problems`.  An empty
 * document is YAML_NOTHING.  The tree lives in `arena`. */
afs_err yaml_read(const char *text, size_t n, const char *file, struct arena *arena,
	struct yaml_node **out, struct buf *problems);
/* The child of a map, or NULL. */
const struct yaml_node *yaml_child(const struct yaml_node *map, const char *key);
/* What a person would call it: "a list", "\"abc\"". */
const char *yaml_found(char *out, size_t size, const struct yaml_node *node);
