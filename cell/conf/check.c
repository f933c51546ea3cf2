/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Rules between keys, once each value is right by itself. */
#include "cell/conf/schema.h"

#include "cell/base/text.h"

#include <string.h>

/* Where the value of a dotted path stands; the top of the file when it is a default. */
static struct conf_pos pos_at(const struct yaml_node *root, const char *path)
{
	const struct yaml_node *n = root;
	for (const char *p = path; n && *p;) {
		char key[64];
		size_t len = strcspn(p, ".");
		if (len >= sizeof(key))
			break;
		memcpy(key, p, len);
		key[len] = '\0';
		n = yaml_child(n, key);
		p += len + (p[len] == '.');
	}
	return n ? n->pos : (struct conf_pos){};
}

/* ... of a list's entry. */
static struct conf_pos item_pos(const struct yaml_node *root, const char *path, const char *text)
{
	const struct yaml_node *list = yaml_child(root, path);
	for (const struct yaml_node *n = list ? list->first : NULL; n; n = n->next)
		if (n->text && strcmp(n->text, text) == 0)
			return n->pos;
	return list ? list->pos : (struct conf_pos){};
}

static void check_ports(struct conf_loader *l, const struct conf *c, const struct yaml_node *root)
{
	const struct {
		const char *path;
		const struct conf_role *role;
	} all[] = {{"roles.fileserver.port", &c->roles.fileserver}, {"roles.volserver.port", &c->roles.volserver},
		{"roles.vlserver.port", &c->roles.vlserver}, {"roles.ptserver.port", &c->roles.ptserver},
		{"roles.bosserver.port", &c->roles.bosserver}, {"roles.client.port", &c->roles.client}};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (!all[i].role->enabled)
			continue;
		for (size_t k = 0; k < i; k++)
			if (all[k].role->enabled && all[k].role->port == all[i].role->port)
				conf_problem(l, pos_at(root, all[i].path), all[i].path, "port %u is that of %s too",
					all[i].role->port, all[k].path);
		if (c->roles.client.enabled && all[i].role->port == c->client.tools_port)
			conf_problem(l, pos_at(root, all[i].path), all[i].path, "port %u is that of client.tools_port too",
				all[i].role->port);
		if (c->realm.mode == CONF_REALM_EMBEDDED && all[i].role->port == c->realm.kdc_port)
			conf_problem(l, pos_at(root, all[i].path), all[i].path, "port %u is that of realm.kdc_port too",
				all[i].role->port);
	}
}

static void check_console(struct conf_loader *l, const struct conf *c, const struct yaml_node *root)
{
	uint32_t ip;
	bool tls = *c->console.certificate && *c->console.key;
	if (!c->roles.console.enabled)
		return;
	if (c->realm.mode == CONF_REALM_EMBEDDED && c->roles.console.port == c->realm.kdc_port)
		conf_problem(l, pos_at(root, "roles.console.port"), "roles.console.port", "port %u is that of realm.kdc_port too",
			c->roles.console.port);
	if (!text_ipv4(c->console.address, &ip))
		conf_problem(l, pos_at(root, "console.address"), "console.address", "expected an IPv4 address, found \"%s\"",
			c->console.address);
	else if (ip >> 24 != 127 && !tls && !c->console.behind_proxy)
		conf_problem(l, pos_at(root, "console.address"), "console.address",
			"%s can be reached from elsewhere, where passwords may not go in the clear: give console.certificate and "
			"console.key, or say console.behind_proxy: true", c->console.address);
	if (!*c->console.certificate != !*c->console.key)
		conf_problem(l, pos_at(root, "console"), "console.key", "a certificate and its key belong together");
	if (c->console.behind_proxy && !*c->console.host)
		conf_problem(l, pos_at(root, "console"), "console.host", "expected the name that browsers ask the proxy for");
}

static bool inside(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	return n && strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0' || n == 1);
}

static void check_places(struct conf_loader *l, const struct conf *c, const struct yaml_node *root)
{
	if (strcmp(c->state, "/") == 0 || !*c->state)
		conf_problem(l, pos_at(root, "state"), "state", "expected a directory of the cell's own, found \"%s\"", c->state);
	const char *mount = c->client.mount;
	if (!*mount)
		return;
	if (strcmp(mount, "/") == 0)
		conf_problem(l, pos_at(root, "client.mount"), "client.mount", "expected a directory, found \"/\"");
	else if (inside(c->state, mount) || inside(c->client.cache, mount) || inside(c->run, mount))
		conf_problem(l, pos_at(root, "client.mount"), "client.mount",
			"%s would cover the state, the cache or the run directory, which must stay outside of AFS", mount);
	for (size_t i = 0; i < c->partition_count; i++)
		if (inside(c->partitions[i].path, mount))
			conf_problem(l, c->partitions[i].pos, "partitions", "%s is inside the mount %s", c->partitions[i].path, mount);
}

static void check_realm(struct conf_loader *l, const struct conf *c, const struct yaml_node *root)
{
	for (size_t i = 0; i < c->trust_count; i++) {
		const struct conf_trust *t = &c->trusts[i];
		if (c->realm.mode != CONF_REALM_EMBEDDED)
			conf_problem(l, t->pos, "trusts", "an external realm keeps its own; leave %s out", t->name);
		else if (strcmp(t->name, c->realm.name) == 0)
			conf_problem(l, t->pos, "trusts", "%s is the cell's own realm", t->name);
		else if (!*t->password_file)
			conf_problem(l, t->pos, "trusts", "%s has no password_file; both realms need the same", t->name);
	}
	if (c->realm.mode == CONF_REALM_EMBEDDED) {
		if (*c->realm.keytab)
			conf_problem(l, pos_at(root, "realm.keytab"), "realm.keytab",
				"belongs to an external realm; set realm.mode: external, or leave it out");
		return;
	}
	if (!*c->realm.keytab && conf_serves(c))
		conf_problem(l, pos_at(root, "realm.mode"), "realm.keytab",
			"expected the keytab with the key of afs/%s, found nothing; an external realm needs it", c->cell);
	for (size_t i = 0; i < c->user_count; i++)
		if (*c->users[i].password_file || *c->users[i].password_env)
			conf_problem(l, c->users[i].pos, "users",
				"%s has a password here, but an external realm keeps its own; leave it out", c->users[i].name);
}

static void check_people(struct conf_loader *l, const struct conf *c)
{
	for (size_t i = 0; i < c->user_count; i++) {
		const struct conf_user *u = &c->users[i];
		if (*u->password_file && *u->password_env)
			conf_problem(l, u->pos, "users", "%s has both password_file and password_env; choose one", u->name);
		if (u->id == 32766)
			conf_problem(l, u->pos, "users", "id 32766 is that of anonymous");
		for (size_t k = 0; k < i && u->id; k++)
			if (c->users[k].id == u->id)
				conf_problem(l, u->pos, "users", "%s has the id of %s, %lld", u->name, c->users[k].name, (long long)u->id);
	}
	for (size_t i = 0; i < c->group_count; i++) {
		const struct conf_group *g = &c->groups[i];
		if (strncmp(g->name, "system:", 7) == 0)
			conf_problem(l, g->pos, "groups", "%s is one of the cell's own groups; see \"administrators\"", g->name);
		if (g->id && g->id >= -205)
			conf_problem(l, g->pos, "groups", "ids from -1 to -205 are the cell's own; found %lld", (long long)g->id);
		for (size_t k = 0; k < i && g->id; k++)
			if (c->groups[k].id == g->id)
				conf_problem(l, g->pos, "groups", "%s has the id of %s, %lld", g->name, c->groups[k].name, (long long)g->id);
		for (size_t k = 0; k < c->user_count; k++)
			if (strcmp(c->users[k].name, g->name) == 0)
				conf_problem(l, g->pos, "groups", "%s is the name of a user too", g->name);
		const char *colon = strchr(g->name, ':');
		if (colon && *g->owner && (strlen(g->owner) != (size_t)(colon - g->name) || strncmp(g->owner, g->name, strlen(g->owner)) != 0))
			conf_problem(l, g->pos, "groups", "%s must be owned by %.*s, as its name says; found %s", g->name,
				(int)(colon - g->name), g->name, g->owner);
	}
}

static void check_volumes(struct conf_loader *l, const struct conf *c, const struct yaml_node *root)
{
	if ((c->volume_count || c->mount_count || c->acl_count) && !c->roles.fileserver.enabled) {
		const char *path = c->volume_count ? "volumes" : c->mount_count ? "mounts" : "acls";
		conf_problem(l, pos_at(root, path), path, "needs the file server on this machine (roles.fileserver.enabled)");
		return;
	}
	for (size_t i = 0; i < c->volume_count; i++) {
		const struct conf_volume *v = &c->volumes[i];
		bool known = !*v->partition;
		for (size_t k = 0; k < c->partition_count; k++)
			known = known || strcmp(c->partitions[k].name, v->partition) == 0;
		if (!known)
			conf_problem(l, v->pos, "volumes", "%s is to be on partition \"%s\", which \"partitions\" does not name",
				v->name, v->partition);
		if (strcmp(v->name, "root.cell") == 0 && *v->mount)
			conf_problem(l, v->pos, "volumes", "root.cell is the cell's root and is mounted already");
		if (strcmp(v->mount, ".") == 0)
			conf_problem(l, v->pos, "volumes", "%s cannot be mounted over the cell's root", v->name);
		for (size_t k = 0; k < i && *v->mount; k++)
			if (strcmp(c->volumes[k].mount, v->mount) == 0)
				conf_problem(l, v->pos, "volumes", "%s is to be mounted at %s, where %s is", v->name, v->mount,
					c->volumes[k].name);
	}
	for (size_t i = 0; i < c->mount_count; i++) {
		const struct conf_mount *m = &c->mounts[i];
		if (!*m->volume)
			conf_problem(l, m->pos, "mounts", "%s names no volume", m->path);
		if (strcmp(m->path, ".") == 0)
			conf_problem(l, m->pos, "mounts", "the cell's root itself cannot be a mount point");
		for (size_t k = 0; k < c->volume_count; k++)
			if (strcmp(c->volumes[k].mount, m->path) == 0 && strcmp(c->volumes[k].name, m->volume) != 0)
				conf_problem(l, m->pos, "mounts", "%s is where %s is to be mounted", m->path, c->volumes[k].name);
	}
}

static void check_addresses(struct conf_loader *l, const struct conf *c, const struct yaml_node *root)
{
	if (c->listen.n == 0)
		conf_problem(l, pos_at(root, "listen"), "listen", "expected at least one address");
	for (size_t i = 0; i < c->listen.n; i++)
		if (c->listen.v[i] == 0 && c->listen.n > 1)
			conf_problem(l, pos_at(root, "listen"), "listen", "0.0.0.0 is every address; it stands alone");
	for (size_t i = 0; i < c->database_servers.n; i++)
		if (c->database_servers.v[i] == 0)
			conf_problem(l, pos_at(root, "database_servers"), "database_servers", "0.0.0.0 is no server's address");
	bool needs_db = c->roles.client.enabled || c->roles.fileserver.enabled || c->roles.volserver.enabled;
	if (needs_db && !c->roles.vlserver.enabled && c->database_servers.n == 0)
		conf_problem(l, pos_at(root, "roles.vlserver.enabled"), "database_servers",
			"expected the addresses of the cell's database servers, since roles.vlserver is off here");
	if (c->roles.volserver.enabled && !c->roles.fileserver.enabled)
		conf_problem(l, pos_at(root, "roles.volserver.enabled"), "roles.volserver.enabled",
			"needs the file server (roles.fileserver.enabled)");
}

void conf_check(struct conf_loader *l, const struct conf *c, const struct yaml_node *root)
{
	check_places(l, c, root);
	check_addresses(l, c, root);
	check_ports(l, c, root);
	check_console(l, c, root);
	check_realm(l, c, root);
	check_people(l, c);
	check_volumes(l, c, root);
	for (size_t i = 0; i < c->administrators.n && c->realm.mode == CONF_REALM_EMBEDDED && c->roles.ptserver.enabled; i++) {
		bool known = c->user_count == 0; /* made by other means */
		for (size_t k = 0; k < c->user_count; k++)
			known = known || strcmp(c->users[k].name, c->administrators.v[i]) == 0;
		if (!known)
			conf_problem(l, item_pos(root, "administrators", c->administrators.v[i]), "administrators",
				"%s is not among \"users\"", c->administrators.v[i]);
	}
}
