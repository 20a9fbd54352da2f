// SPDX-License-Identifier: GPL-2.0
/*
 * Coupled congestion controls and responses to reordering for the virtual kernel, as net/mptcp/tcp_controls.c. The
 * same arithmetic serves running kernels as BPF (controls.bpf.c).
 */
#include <linux/module.h>
#include <net/tcp.h>
#include "protocol.h"

#define COUPLED_FUNCTION static noinline
#include "coupled.h"
#include "door.h"

static struct tcp_congestion_ops coupled[COUPLED_RULES];

static u32 coupled_rule_of(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_ops - coupled;
}

static void add_flow(struct coupled *all, const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	coupled_add(all, tcp_snd_cwnd(tp), tp->srtt_us >> 3, coupled_delivered(inet_csk_ca(sk), tp->delivered));
}

/*
 * Subflows are added and removed under the connection's lock, which is not held here. On the one processor of this
 * kernel a walk forwards meets a whole list at every moment of either.
 */
static void look_at_subflows(struct sock *sk, struct coupled *all)
{
	const struct tcp_congestion_ops *own = inet_csk(sk)->icsk_ca_ops;
	struct mptcp_subflow_context *subflow;

	BUILD_BUG_ON(IS_ENABLED(CONFIG_SMP));
	memset(all, 0, sizeof(*all));
	add_flow(all, sk);
	if (!sk_is_mptcp(sk) || !mptcp_subflow_ctx(sk)->conn)
		return;
	mptcp_for_each_subflow(mptcp_sk(mptcp_subflow_ctx(sk)->conn), subflow) {
		struct sock *other = mptcp_subflow_tcp_sock(subflow);

		if (other && other != sk && other->sk_state == TCP_ESTABLISHED && inet_csk(other)->icsk_ca_ops == own)
			add_flow(all, other);
	}
}

static void coupled_init(struct sock *sk)
{
	struct coupled_state *state = inet_csk_ca(sk);

	*state = (struct coupled_state){ .at_loss = tcp_sk(sk)->delivered };
}

static void coupled_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct coupled all;
	u32 window;

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	look_at_subflows(sk, &all);
	window = coupled_grow(inet_csk_ca(sk), coupled_increase(&all, coupled_rule_of(sk)) * acked, tcp_snd_cwnd(tp));
	tcp_snd_cwnd_set(tp, min(window, tp->snd_cwnd_clamp));
}

static u32 coupled_ssthresh(struct sock *sk)
{
	struct coupled all;

	coupled_lost(inet_csk_ca(sk), tcp_sk(sk)->delivered);
	look_at_subflows(sk, &all);
	return all.count ? coupled_decrease(&all, coupled_rule_of(sk)) : tcp_reno_ssthresh(sk);
}

#define COUPLED(rule_name)						\
	{								\
		.flags = TCP_CONG_NON_RESTRICTED,			\
		.name = rule_name,					\
		.owner = THIS_MODULE,					\
		.init = coupled_init,					\
		.ssthresh = coupled_ssthresh,				\
		.cong_avoid = coupled_cong_avoid,			\
		.undo_cwnd = tcp_reno_undo_cwnd,			\
	}

static struct tcp_congestion_ops coupled[COUPLED_RULES] = {
	[COUPLED_LIA] = COUPLED("lia"),
	[COUPLED_OLIA] = COUPLED("olia"),
	[COUPLED_BALIA] = COUPLED("balia"),
	[COUPLED_FULLY] = COUPLED("fully_coupled"),
};

/* PR-R (Alheid et al. 2016, algorithm 1): a fast retransmit leaves the window as it is, a timeout halves it. */
static u32 pr_r_ssthresh(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

static void pr_r_set_state(struct sock *sk, u8 state)
{
	if (state == TCP_CA_Loss || state == TCP_CA_CWR)
		tcp_sk(sk)->snd_ssthresh = max(tcp_sk(sk)->prior_cwnd >> 1, 2U);
}

static struct tcp_congestion_ops pr_r = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "pr_r",
	.owner = THIS_MODULE,
	.ssthresh = pr_r_ssthresh,
	.set_state = pr_r_set_state,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static void door_init(struct sock *sk)
{
	struct door *door = inet_csk_ca(sk);

	*door = (struct door){ .reordered = tcp_sk(sk)->reord_seen };
}

static u32 door_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return door_threshold(inet_csk_ca(sk), tcp_jiffies32, tcp_snd_cwnd(tp), tp->snd_ssthresh);
}

static void door_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	if (!door_holds(inet_csk_ca(sk), tcp_jiffies32))
		tcp_reno_cong_avoid(sk, ack, acked);
}

static void door_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct door *door = inet_csk_ca(sk);
	bool recovers = inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery;

	if (!door_looks(door, tcp_jiffies32, inet_csk(sk)->icsk_rto, tp->reord_seen))
		return;
	/* A recovery ends with a window of the threshold. */
	tp->snd_ssthresh = recovers ? door->window : max(door->threshold, tp->snd_ssthresh);
	tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), door->window));
	door->window = 0;
}

static struct tcp_congestion_ops door = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "door",
	.owner = THIS_MODULE,
	.init = door_init,
	.ssthresh = door_ssthresh,
	.cong_avoid = door_cong_avoid,
	.pkts_acked = door_pkts_acked,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init register_controls(void)
{
	int i;

	BUILD_BUG_ON(sizeof(struct coupled_state) > ICSK_CA_PRIV_SIZE || sizeof(struct door) > ICSK_CA_PRIV_SIZE);
	for (i = 0; i < COUPLED_RULES; i++)
		WARN_ON(tcp_register_congestion_control(&coupled[i]));
	WARN_ON(tcp_register_congestion_control(&pr_r));
	return tcp_register_congestion_control(&door);
}
late_initcall(register_controls);
