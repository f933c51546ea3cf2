/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The order in which locks are taken, outermost first: one line per lock class.  A thread that
 * holds a lock may take only locks further down; two of one rank go by id. */
#pragma once

enum lock_rank {
	RANK_NONE = 0,      /* a leaf of its own that is never held with another */
	RANK_CELL,          /* cell/: roles starting and stopping */
	RANK_CELL_PARTS,    /* cell/: which roles run, while one is started or stopped */
	RANK_CELL_VOL,      /* cell/: the volume server stays while it is used */
	RANK_BOS,           /* cell/bos: goals of instances, superusers added */
	RANK_FUSE,          /* client/fuse: inode table */
	RANK_CM_TABLE,      /* client/cm: tables of cells, servers, volumes, vnodes, users */
	RANK_CM_VNODE,      /* client/cm: one vnode */
	RANK_CACHE,         /* client/cache: chunk index, space */
	RANK_CELL_FS,       /* cell/: the file server stays while it is used */
	RANK_FS_HOST,       /* fileserver/cb: hosts and their clients */
	RANK_CB,            /* fileserver/cb: the promise table */
	RANK_VOL_TRANS,     /* fileserver/vol: transactions */
	RANK_VS_PARTITION,  /* fileserver/store: table of volumes */
	RANK_VS_VOLUME,     /* fileserver/store: one volume */
	RANK_VS_VNODE,      /* fileserver/store: one vnode */
	RANK_DB,            /* cell/db: a connection */
	RANK_RPC_PORT,      /* rx/rpc: the endpoint of a port */
	RANK_RPC_CALL,      /* rx/rpc: a call's stream */
	RANK_RPC_QUEUE,     /* rx/rpc: work that waits for the endpoint */
	RANK_WORKERS,       /* rx/io: queue of calls for workers */
	RANK_POOL,          /* packet buffers */
	RANK_LEAF,          /* counters, audit file, log */
};
