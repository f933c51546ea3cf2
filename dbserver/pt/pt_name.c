/* SPDX-License-Identifier: BSD-2-Clause
 * What may be a name.  Stricter than stock in what no tool can handle: no empty names, blanks or control
 * characters (they end lines and columns of ACLs and logs). */
#include "dbserver/pt/pt_store.h"

#include <strings.h>

static bool bytes_ok(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f)
			return false;
	return true;
}

const char *pt_name_realm(const char *name)
{
	const char *at = strchr(name, '@');
	return at ? at + 1 : NULL;
}

bool pt_name_user_ok(const char *name)
{
	if (!*name || strlen(name) > PT_NAME_MAX || strchr(name, ':') || !bytes_ok(name))
		return false;
	const char *realm = pt_name_realm(name);
	return !realm || (realm > name + 1 && *realm && !strchr(realm, '@'));
}

bool pt_name_group_ok(const char *name)
{
	if (!*name || strlen(name) > PT_NAME_MAX || !bytes_ok(name))
		return false;
	const char *colon = strchr(name, ':');
	if (colon)
		return colon > name && colon[1] && !strchr(colon + 1, ':');
	/* without a prefix it must not look like an id or a foreign user */
	return !strchr(name, '@') && name[strspn(name, "-0123456789")] != 0;
}

afs_err pt_name_fold(const char *p, size_t len, char out[PT_NAME_MAX + 1])
{
	if (len > PT_NAME_MAX)
		return AFS_EBADNAME;
	for (size_t i = 0; i < len; i++)
		out[i] = p[i] >= 'A' && p[i] <= 'Z' ? (char)(p[i] | 0x20) : p[i];
	out[len] = 0;
	return AFS_OK;
}

bool pt_realm_is_local(const struct keys_realms *realms, const char *realm)
{
	if (!realms)
		return false;
	if (realms->cell && strcasecmp(realm, realms->cell) == 0)
		return true;
	for (size_t i = 0; i < realms->local_n; i++)
		if (strcasecmp(realm, realms->local[i]) == 0)
			return true;
	return false;
}

void pt_name_prefix(const struct pt_entry *owner, char out[PT_NAME_MAX + 1])
{
	memset(out, 0, PT_NAME_MAX + 1);
	if (owner->id == AFS_ADMINISTRATORS) {
		strcpy(out, "system");
		return;
	}
	const char *colon = owner->id < 0 ? strchr(owner->name, ':') : NULL;
	memcpy(out, owner->name, colon ? (size_t)(colon - owner->name) : strlen(owner->name));
}
