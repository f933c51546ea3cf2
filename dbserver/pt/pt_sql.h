/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The tables and the names of the statements of the protection database; the text is in pt_store.c.
 *
 *   pt_entry    users (id > 0) and groups (id < 0), in the order they were made (n); flags is NULL
 *               while the default of its kind holds; owner 0: an orphan
 *   pt_member   member (a user, or a group in another) and group
 *   pt_meta     one row: the largest user id and smallest group id given, Ubik's version */
#pragma once

enum pt_sql {
	PS_META, PS_META_VERSION, PS_META_MAX,
	PS_BY_ID, PS_BY_NAME, PS_NEXT, PS_NUMBER_OF, PS_TIMES_OF, PS_ID_OF, PS_NAME_OF,
	PS_INSERT, PS_UPDATE, PS_QUOTA, PS_DELETE,
	PS_MEMBER_ADD, PS_MEMBER_REMOVE, PS_MEMBER_HAS, PS_MEMBERS_PURGE,
	PS_GROUPS_OF, PS_MEMBERS_OF, PS_GROUPS_ABOVE, PS_IS_ABOVE, PS_OWNED,
	PS_RENUMBER, PS_RENUMBER_OWNER, PS_RENUMBER_CREATOR, PS_RENUMBER_CELL, PS_RENUMBER_MEMBER,
	PS_RENUMBER_GROUP,
	PS_COUNT
};
