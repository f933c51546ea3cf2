/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rows of schema.def as a table, and the kinds of values; only for this folder. */
#pragma once
#include "cell/conf/conf.h"
#include "cell/conf/yaml.h"

#include <stddef.h>

/* kind, C type of the member, what a person is told is expected */
#define CONF_KINDS(K)                                                                              \
	K(BOOL, bool, "true or false")                                                             \
	K(INT, int64_t, "a whole number")                                                          \
	K(OCTAL, int64_t, "mode bits in octal, such as 755")                                       \
	K(PORT, uint16_t, "a port number from 1 to 65535")                                         \
	K(SIZE, int64_t, "a size in bytes, such as 64M or 1G")                                     \
	K(ENUM, int, "one of a few words")                                                         \
	K(TEXT, char *, "text")                                                                    \
	K(FILEPATH, char *, "a path")                                                              \
	K(MOUNT, char *, "a directory to mount at, or none")                                       \
	K(RELPATH, char *, "a path relative to the cell's root, without \"..\"")                   \
	K(CELL, char *, "a cell name: a domain name in lower case")                                \
	K(REALM, char *, "a realm name, such as EXAMPLE.ORG")                                      \
	K(PARTITION, char *, "a partition name from a to iu")                                      \
	K(USER, char *, "a user name: letters, digits and . _ - of at most 63")                    \
	K(USERNAME, char *, "a user name: letters, digits and . _ - of at most 63")                \
	K(GROUP, char *, "a group name: name or owner:name, of at most 63 letters")                \
	K(PRNAME, char *, "a name of a user or group")                                             \
	K(VOLUME, char *, "a volume name: letters, digits and . _ - of at most 22")                \
	K(USERS, struct conf_names, "a list of user names")                                        \
	K(REALMS, struct conf_names, "a list of realm names")                                      \
	K(ADDRS, struct conf_addrs, "a list of IPv4 addresses")                                    \
	K(ACL, struct conf_acl, "a map of names and rights")

enum conf_kind {
#define K(name, type, text) CONF_##name,
	CONF_KINDS(K)
#undef K
};

enum conf_row_type { CONF_ROW_KEY, CONF_ROW_SECTION, CONF_ROW_MAP };
struct conf_row {
	enum conf_row_type type;
	const char *path, *text;
	/* keys, and names of map elements */
	enum conf_kind kind;
	size_t offset; /* of the member, array or name */
	const char *dflt, *choices;
	int64_t min, max;
	/* maps */
	size_t count_offset, element_size, pos_offset, name_offset;
	const char *short_key, *sample;
};
extern const struct conf_row conf_rows[];
extern const size_t conf_row_count;

struct conf_loader {
	const char *file;
	struct buf *problems;
	unsigned problem_count;
	afs_err err; /* AFS_ENOMEM and the like: stop */
};
/* A problem at `pos` with the key `path` ("" for none). */
[[gnu::format(printf, 4, 5)]] void conf_problem(
	struct conf_loader *l, struct conf_pos pos, const char *path, const char *fmt, ...);

/* Sets the member of `row` inside `base` from a node, freeing what was there; or reports. */
void conf_set(struct conf_loader *l, const struct conf_row *row, const char *path, void *base,
	const struct yaml_node *node);
/* Frees what the member holds. */
void conf_unset(enum conf_kind kind, void *member);
/* Is `s` a value of this kind of name?  For names of map elements. */
bool conf_name_ok(enum conf_kind kind, const char *s);
const char *conf_expected(enum conf_kind kind);
/* Rules between keys. */
void conf_check(struct conf_loader *l, const struct conf *c, const struct yaml_node *root);
