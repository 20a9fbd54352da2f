// SPDX-License-Identifier: GPL-2.0
/*
 * Packet schedulers of MPTCP for the virtual kernel, as net/mptcp/mptcp_schedulers.c; net.mptcp.scheduler chooses. A decision is about
 * what the application wrote at once, 32 kB at the most: mainline asks no more often.
 */
#include <linux/module.h>
#include <net/tcp.h>
#include "protocol.h"

static bool has_room(struct mptcp_subflow_context *subflow)
{
	return mptcp_subflow_active(subflow) && sk_stream_memory_free(mptcp_subflow_tcp_sock(subflow));
}

static int choose(struct mptcp_sock *msk, struct mptcp_subflow_context *subflow)
{
	if (!subflow)
		return -EINVAL;
	msk->snd_burst = 0;
	msk->last_subflow_id = subflow->subflow_id;
	mptcp_subflow_set_scheduled(subflow, true);
	return 0;
}

static int send_again(struct mptcp_sock *msk)
{
	struct sock *ssk = mptcp_subflow_get_retrans(msk);

	return choose(msk, ssk ? mptcp_subflow_ctx(ssk) : NULL);
}

/* The next after the last, of those with room. */
static int round_robin(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow, *first = NULL, *next = NULL;

	mptcp_for_each_subflow(msk, subflow) {
		if (!has_room(subflow))
			continue;
		if (!first || subflow->subflow_id < first->subflow_id)
			first = subflow;
		if (subflow->subflow_id > msk->last_subflow_id && (!next || subflow->subflow_id < next->subflow_id))
			next = subflow;
	}
	return choose(msk, next ? next : first);
}

/* The least smoothed round-trip time, of those whose congestion window has room and that hold nothing back. */
static int least_rtt(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow, *best = NULL;
	u32 least_us = U32_MAX;

	mptcp_for_each_subflow(msk, subflow) {
		struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
		struct tcp_sock *tp = tcp_sk(ssk);

		if (!has_room(subflow) || tcp_send_head(ssk) || tcp_packets_in_flight(tp) >= tcp_snd_cwnd(tp))
			continue;
		if (tp->srtt_us < least_us) {
			least_us = tp->srtt_us;
			best = subflow;
		}
	}
	return choose(msk, best);
}

/* Each of those with room, which all carry every byte: __subflow_push_copies() knows how far each has come. */
static int everywhere(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;
	bool any = false;

	mptcp_for_each_subflow(msk, subflow) {
		if (!has_room(subflow) || (subflow->given && !before64(subflow->given, msk->write_seq)))
			continue;
		mptcp_subflow_set_scheduled(subflow, true);
		any = true;
	}
	return any ? 0 : -EINVAL;
}

static struct mptcp_sched_ops schedulers[] = {
	{ .name = "roundrobin", .owner = THIS_MODULE, .get_send = round_robin, .get_retrans = send_again },
	{ .name = "minrtt", .owner = THIS_MODULE, .get_send = least_rtt, .get_retrans = send_again },
	{ .name = "redundant", .owner = THIS_MODULE, .get_send = everywhere, .get_retrans = send_again },
};

bool mptcp_is_redundant(const struct mptcp_sock *msk)
{
	return msk->sched && msk->sched->get_send == everywhere;
}

static int __init register_schedulers(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(schedulers); i++)
		WARN_ON(mptcp_register_scheduler(&schedulers[i]));
	return 0;
}
late_initcall(register_schedulers);
