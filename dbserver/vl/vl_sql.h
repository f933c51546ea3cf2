/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The tables and the names of the statements of the location database; the text is in vl_store.c.
 *
 *   vl_entry    a row per volume group: RW, RO and BK under one name
 *   vl_id       each id that an entry has, so that an id is in one place whatever its type
 *   vl_site     where it is: up to 13 of (server slot, partition, flags), in the client's order
 *   vl_server   slots 1 to 254; uuid is NULL for a server that never registered
 *   vl_addr     addresses, the first is the one that entries show
 *   vl_meta     one row: the volume id counter, and Ubik's version of the database */
#pragma once

enum vl_sql {
	VS_META, VS_META_VERSION, VS_META_MAX,
	VS_ROW_BY_N, VS_ROW_BY_NAME, VS_ROW_BY_ID, VS_ROW_NEXT, VS_ROW_LAST, VS_ROW_COUNT, VS_SITES,
	VS_ROW_INSERT, VS_ROW_UPDATE, VS_ROW_DELETE, VS_IDS_DELETE, VS_ID_INSERT, VS_SITES_DELETE,
	VS_SITE_INSERT, VS_ID_OWNER, VS_NAME_OWNER, VS_ID_LAST,
	VS_SERVER_BY_SLOT, VS_SERVER_BY_IP, VS_SERVER_BY_UUID, VS_SERVER_ADDRS, VS_SERVER_SLOTS,
	VS_SERVER_INSERT, VS_SERVER_UPDATE, VS_SERVER_DELETE, VS_ADDRS_DELETE, VS_ADDR_INSERT,
	VS_SERVER_USED,
	VS_COUNT
};
