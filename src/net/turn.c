/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/turn.h"

#include "base/timer.h"
#include "net/pair.h"

static void kicks_off(struct queue *q)
{
	if (virtq_is_live(&q->vq))
		virtq_kicks_off(&q->vq);
}

/*
 * Send the calls whose delay is over. With `tx_at_rx` a call of the receive side, now or in the
 * burst just before, takes the transmit side's along, which then needs no wake-up of its own.
 */
static void call_if_due(struct pair *p, bool was_rx_called)
{
	uint64_t now_ns;

	if (p->rx.moder.n_pending == 0 && p->tx.moder.n_pending == 0)
		return;
	now_ns = clock_now_ns();
	was_rx_called |= queue_call_if_due(&p->rx, now_ns);
	if (was_rx_called && p->params.tx_at_rx)
		queue_call_pending(&p->tx);
	else
		queue_call_if_due(&p->tx, now_ns);
}

/* Return: whether the port has frames for which there may be room. */
static bool rx_goes_on(const struct pair *p)
{
	return p->port->rx_more && !p->rx_is_starved && virtq_is_live(&p->rx.vq) &&
	       p->rx.is_enabled;
}

bool turn(struct pair *p)
{
	uint64_t n_calls;
	unsigned n;

	kicks_off(&p->tx);
	kicks_off(&p->rx);
	n = tx_burst(p);
	n_calls = stat_read(&p->stats, STAT_calls);
	n += rx_burst(p);
	call_if_due(p, stat_read(&p->stats, STAT_calls) != n_calls);
	return n > 0 || rx_goes_on(p);
}
