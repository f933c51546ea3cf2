/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Lists of packets that know how many and how long they are. */
#include "rx/rpc/stream.h"

void rpc_queue_init(struct rpc_queue *q)
{
	*q = (struct rpc_queue){0};
	q->tail = &q->head;
}

void rpc_queue_push(struct rpc_queue *q, struct rx_packet *p)
{
	p->next = NULL;
	*q->tail = p;
	q->tail = &p->next;
	q->packets++;
	q->bytes += p->len;
}

struct rx_packet *rpc_queue_pop(struct rpc_queue *q)
{
	struct rx_packet *p = q->head;
	if (!p)
		return NULL;
	q->head = p->next;
	if (!q->head)
		q->tail = &q->head;
	q->packets--;
	q->bytes -= p->len;
	p->next = NULL;
	return p;
}

void rpc_queue_append(struct rpc_queue *q, struct rpc_queue *from)
{
	if (!from->head)
		return;
	*q->tail = from->head;
	q->tail = from->tail;
	q->packets += from->packets;
	q->bytes += from->bytes;
	rpc_queue_init(from);
}

void rpc_queue_clear(struct rpc_queue *q)
{
	struct rx_packet *p;
	while ((p = rpc_queue_pop(q)))
		rx_packet_free(p);
}
