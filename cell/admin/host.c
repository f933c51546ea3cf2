/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Servers by name and by address.  Names are asked for once per run. */
#include "cell/admin/inside.h"

#include "cell/admin/calls.h"
#include "cell/admin/session.h"
#include "cell/base/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

enum { LOOPBACK_NET = 127, LETTERS = 26, PARTITION_MAX = 255 };

afs_err admin_host_ip(struct admin *a, const char *name, uint32_t *ip)
{
	if (text_ipv4(name, ip))
		return AFS_OK;
	struct addrinfo hint = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *list = NULL;
	int code = getaddrinfo(name, NULL, &hint, &list);
	if (code != 0)
		return admin_refuse(a, AFS_ENOENT, "there is no host \"%s\" (%s)", name, gai_strerror(code));
	bool found = false;
	for (struct addrinfo *i = list; i; i = i->ai_next) {
		struct sockaddr_in sin;
		memcpy(&sin, i->ai_addr, sizeof(sin));
		uint32_t one = ntohl(sin.sin_addr.s_addr);
		if (!found || *ip >> 24 == LOOPBACK_NET)
			*ip = one;
		found = true;
	}
	freeaddrinfo(list);
	return found ? AFS_OK : AFS_ENOENT;
}

const char *admin_host_name(struct admin *a, uint32_t ip)
{
	for (struct session_host *h = a->hosts; h; h = h->next)
		if (h->ip == ip)
			return h->name;
	char name[NI_MAXHOST];
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip)};
	if (!a->names
		|| getnameinfo((struct sockaddr *)&sin, sizeof(sin), name, sizeof(name), NULL, 0, NI_NAMEREQD | NI_DGRAM) != 0)
		text_ipv4_of(name, ip);
	struct session_host *h = mem_new(struct session_host);
	char *copy = mem_strdup(name);
	if (!h || !copy) {
		mem_free(h);
		mem_free(copy);
		return "?";
	}
	*h = (struct session_host){a->hosts, ip, copy};
	a->hosts = h;
	return copy;
}

static const struct session_server *server_of(struct admin *a, uint32_t ip)
{
	for (struct session_server *s = a->servers; s; s = s->next)
		if (s->asked == ip)
			return s;
	struct session_server *s = mem_new(struct session_server);
	if (!s)
		return NULL;
	CLEANUP(arena) struct arena arena;
	arena_init(&arena, ADMIN_FILE_MAX);
	struct vl_get_addrs_u_in in = {.inaddr = {.Mask = VLADDR_IPADDR, .ipaddr = ip}};
	struct vl_get_addrs_u_out out = {};
	/* An address that is not registered stands for itself. */
	if (VL_CALL(a, get_addrs_u, &in, &out, &arena) == AFS_OK) {
		s->n = MIN(out.blkaddrs.n, (uint32_t)VL_ADDRS_MAX);
		memcpy(s->ips, out.blkaddrs.v, s->n * sizeof(s->ips[0]));
	}
	s->asked = ip;
	s->next = a->servers;
	return a->servers = s;
}

bool admin_same_server(struct admin *a, uint32_t x, uint32_t y)
{
	if (x == y)
		return true;
	const struct session_server *s = server_of(a, x);
	for (size_t i = 0; s && i < s->n; i++)
		if (s->ips[i] == y)
			return true;
	return false;
}

/* Source: volserver.md §1: 0-25 are a-z, 26 + 26 i + j is two letters. */
bool admin_partition(const char *name, int32_t *id)
{
	if (strncmp(name, "/vicep", 6) == 0)
		name += 6;
	else if (strncmp(name, "vicep", 5) == 0)
		name += 5;
	int64_t n;
	if (text_int(name, &n)) {
		*id = (int32_t)n;
		return n >= 0 && n <= PARTITION_MAX;
	}
	size_t len = strlen(name);
	for (size_t i = 0; i < len; i++)
		if (!islower((unsigned char)name[i]))
			return false;
	if (len == 1)
		*id = name[0] - 'a';
	else if (len == 2)
		*id = LETTERS + (name[0] - 'a') * LETTERS + (name[1] - 'a');
	else
		return false;
	return *id <= PARTITION_MAX;
}

const char *admin_partition_name(char *out, int32_t id)
{
	if (id >= 0 && id < LETTERS)
		snprintf(out, 16, "/vicep%c", 'a' + id);
	else if (id >= LETTERS && id <= PARTITION_MAX)
		snprintf(out, 16, "/vicep%c%c", 'a' + (id - LETTERS) / LETTERS, 'a' + (id - LETTERS) % LETTERS);
	else
		snprintf(out, 16, "#%d", id);
	return out;
}
