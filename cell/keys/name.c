/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From principals to AFS names.  Two different principals never get one name: a dot would make
 * `a.b` of a/b and of a.b, an @ would make a local principal look like a foreign one, a colon like a
 * group; so components with them are refused, as are empty ones and control characters. */
#include "cell/keys/keys.h"
#include "cell/keys/ticket.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Kerberos 4 services whose instance is a host's first name.  Source: protocol rx-security.md §7.1. */
static const char *const cut_services[] = {"abs", "acap", "argus", "changepw", "daemon", "discuss",
	"ecat", "ftp", "gdss", "gnats", "http", "imap", "irc", "khttp", "ldap", "lmtp", "mandarin",
	"mandarin-agent", "moira", "mupdate", "news", "nfs", "olc", "palladium", "pgpsigner", "pop",
	"prms", "register", "rfs", "rvdsrv", "sample", "sis", "sms", "afpserver", "smtp", "tftp",
	"write"};

static bool is_cut_service(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(cut_services); i++)
		if (strcmp(name, cut_services[i]) == 0)
			return true;
	return false;
}

static bool part_get(struct der_bytes b, char out[RX_NAME_MAX])
{
	if (b.n >= RX_NAME_MAX)
		return false;
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] < 0x20 || b.p[i] == 0x7f || b.p[i] == '@' || b.p[i] == ':')
			return false;
	if (b.n)
		memcpy(out, b.p, b.n);
	out[b.n] = 0;
	return true;
}

afs_err ticket_name(const struct der_bytes *comp, size_t n, struct der_bytes realm,
	bool allow_dotted, struct rxkad_ticket *out)
{
	char name[RX_NAME_MAX], instance[RX_NAME_MAX] = "", cell[RX_NAME_MAX];
	if (n < 1 || n > 2 || !comp[0].n || !part_get(comp[0], name) || !part_get(realm, cell))
		return AFS_EBADTICKET;
	if (n == 2 && (!comp[1].n || !part_get(comp[1], instance)))
		return AFS_EBADTICKET;
	if (!allow_dotted && strchr(name, '.'))
		return AFS_EBADTICKET;
	if (n == 2 && (strcmp(name, "host") == 0 || is_cut_service(name))) {
		if (strcmp(name, "host") == 0)
			strcpy(name, "rcmd");
		instance[strcspn(instance, ".")] = 0;
		if (!instance[0])
			return AFS_EBADTICKET;
	}
	memcpy(out->name, name, sizeof(name));
	memcpy(out->instance, instance, sizeof(instance));
	memcpy(out->cell, cell, sizeof(cell));
	return AFS_OK;
}

static bool is_local(const struct keys_realms *realms, const char *cell)
{
	if (!cell[0] || strcasecmp(cell, realms->cell) == 0)
		return true;
	for (size_t i = 0; i < realms->local_n; i++)
		if (strcasecmp(cell, realms->local[i]) == 0)
			return true;
	return false;
}

void keys_afs_name(
	const struct keys_realms *realms, const struct rx_caller *caller, struct keys_name *out)
{
	*out = (struct keys_name){.authenticated = caller->authenticated};
	if (!caller->authenticated)
		return;
	out->local = is_local(realms, caller->cell);
	out->localauth =
		strcmp(caller->name, "afs") == 0 && !caller->instance[0] && !caller->cell[0];
	int n = snprintf(out->text, sizeof(out->text), "%s%s%s", caller->name,
		caller->instance[0] ? "." : "", caller->instance);
	if (out->local || n < 0)
		return;
	out->text[n++] = '@';
	for (const char *c = caller->cell; *c; c++)
		out->text[n++] = (char)tolower((unsigned char)*c);
}
