// SPDX-License-Identifier: GPL-2.0
/*
 * Coupled congestion controls and responses to reordering for the running kernel, as BPF struct_ops. The virtual
 * kernel has the same arithmetic built in (tcp_controls.c).
 *
 * The names that the kernel registers are written over the placeholders when the object is loaded (controls.py).
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#define COUPLED_FUNCTION __attribute__((noinline))
#include "coupled.h"
#include "door.h"

char LICENSE[] SEC("license") = "GPL";
const char SOURCE[] SEC("source") = SOURCE_SHA256;

/* Hooks have parameters that the kernel passes, used or not. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* What is used of the kernel's structures; libbpf finds where each field lies. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next;
};

struct sock_common {
	unsigned char skc_state;
};

struct sock {
	struct sock_common __sk_common;
};

struct tcp_congestion_ops;

struct inet_connection_sock {
	__u32 icsk_rto;
	const struct tcp_congestion_ops *icsk_ca_ops;
	void *icsk_ulp_data;
	__u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 srtt_us;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 delivered;
	u32 reord_seen;
	u32 max_packets_out;
	u8 is_cwnd_limited : 1;
	bool is_mptcp;
};

struct mptcp_sock {
	struct list_head conn_list;
};

struct mptcp_subflow_context {
	struct list_head node;
	struct sock *tcp_sock;
	struct sock *conn;
};

struct ack_sample;

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	u32 flags;
	void (*init)(struct sock *sk);
};

#pragma clang attribute pop

#define TCP_ESTABLISHED 1
#define TCP_CA_CWR 2
#define TCP_CA_RECOVERY 3
#define TCP_CA_LOSS 4
#define TCP_CONG_NON_RESTRICTED 1

extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;
extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

#define CAST(pointer, type) ((type *)bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(type)))

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline void *private(struct tcp_sock *tp)
{
	return tp->inet_conn.icsk_ca_priv;
}

static __always_inline int is_cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline void add_flow(struct coupled *all, struct tcp_sock *tp)
{
	const struct coupled_state *state = private(tp);

	coupled_add(all, tp->snd_cwnd, tp->srtt_us >> 3, coupled_delivered(state, tp->delivered));
}

/* The list may change meanwhile: what the kernel reads through these casts is then stale, never a fault. */
static __always_inline void look_at_subflows(struct sock *sk, struct coupled *all)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mptcp_subflow_context *subflow;
	struct list_head *head, *node;
	u32 i;

	add_flow(all, tp);
	if (!tp->is_mptcp || !tp->inet_conn.icsk_ulp_data)
		return;
	subflow = CAST(tp->inet_conn.icsk_ulp_data, struct mptcp_subflow_context);
	head = &CAST(subflow->conn, struct mptcp_sock)->conn_list;
	node = head->next;
	for (i = 0; i < COUPLED_FLOWS && node != head; i++) {
		struct tcp_sock *other;

		subflow = CAST((void *)node - bpf_core_field_offset(struct mptcp_subflow_context, node),
			       struct mptcp_subflow_context);
		node = subflow->node.next;
		if (!subflow->tcp_sock || subflow->tcp_sock == sk)
			continue;
		if (subflow->tcp_sock->__sk_common.skc_state != TCP_ESTABLISHED)
			continue;
		other = CAST(subflow->tcp_sock, struct tcp_sock);
		if (other->inet_conn.icsk_ca_ops == tp->inet_conn.icsk_ca_ops)
			add_flow(all, other);
	}
}

SEC("struct_ops")
void BPF_PROG(coupled_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct coupled_state *state = private(tp);

	state->credit = 0;
	state->at_loss = tp->delivered;
	state->between_losses = 0;
}

static __always_inline void cong_avoid(struct sock *sk, u32 acked, u32 rule)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct coupled all = {};
	u32 window;

	if (!is_cwnd_limited(tp))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	look_at_subflows(sk, &all);
	window = coupled_grow(private(tp), coupled_increase(&all, rule) * acked, tp->snd_cwnd);
	tp->snd_cwnd = window < tp->snd_cwnd_clamp ? window : tp->snd_cwnd_clamp;
}

static __always_inline u32 ssthresh(struct sock *sk, u32 rule)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct coupled all = {};

	coupled_lost(private(tp), tp->delivered);
	look_at_subflows(sk, &all);
	return all.count ? coupled_decrease(&all, rule) : tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
u32 BPF_PROG(reno_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

#define COUPLED(control, rule, placeholder)							\
	SEC("struct_ops")									\
	void BPF_PROG(control##_cong_avoid, struct sock *sk, u32 ack, u32 acked)		\
	{											\
		cong_avoid(sk, acked, rule);							\
	}											\
	SEC("struct_ops")									\
	u32 BPF_PROG(control##_ssthresh, struct sock *sk)					\
	{											\
		return ssthresh(sk, rule);							\
	}											\
	SEC(".struct_ops")									\
	struct tcp_congestion_ops control = {							\
		.flags = TCP_CONG_NON_RESTRICTED,						\
		.name = placeholder,								\
		.init = (void *)coupled_init,							\
		.ssthresh = (void *)control##_ssthresh,						\
		.cong_avoid = (void *)control##_cong_avoid,					\
		.undo_cwnd = (void *)reno_undo_cwnd,						\
	}

COUPLED(lia, COUPLED_LIA, "@lia...........");
COUPLED(olia, COUPLED_OLIA, "@olia..........");
COUPLED(balia, COUPLED_BALIA, "@balia.........");
COUPLED(fully_coupled, COUPLED_FULLY, "@fully_coupled.");

SEC("struct_ops")
void BPF_PROG(reno_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

/* PR-R (Alheid et al. 2016, algorithm 1): a fast retransmit leaves the window as it is, a timeout halves it. */
SEC("struct_ops")
u32 BPF_PROG(pr_r_ssthresh, struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

SEC("struct_ops")
void BPF_PROG(pr_r_set_state, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 half = tp->prior_cwnd / 2;

	if (state == TCP_CA_LOSS || state == TCP_CA_CWR)
		tp->snd_ssthresh = half > 2 ? half : 2;
}

SEC(".struct_ops")
struct tcp_congestion_ops pr_r = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "@pr_r..........",
	.ssthresh = (void *)pr_r_ssthresh,
	.set_state = (void *)pr_r_set_state,
	.cong_avoid = (void *)reno_cong_avoid,
	.undo_cwnd = (void *)reno_undo_cwnd,
};

SEC("struct_ops")
void BPF_PROG(door_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct door *door = private(tp);

	door->reordered = tp->reord_seen;
	door->hold_until = 0;
	door->window = 0;
}

SEC("struct_ops")
u32 BPF_PROG(door_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return door_threshold(private(tp), bpf_jiffies64(), tp->snd_cwnd, tp->snd_ssthresh);
}

SEC("struct_ops")
void BPF_PROG(door_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	if (!door_holds(private(tcp_sk(sk)), bpf_jiffies64()))
		tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
void BPF_PROG(door_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct door *door = private(tp);
	u32 window = door->window;

	if (!door_looks(door, bpf_jiffies64(), tp->inet_conn.icsk_rto, tp->reord_seen))
		return;
	/* A recovery ends with a window of the threshold. */
	if (BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) == TCP_CA_RECOVERY)
		tp->snd_ssthresh = window;
	else if (door->threshold > tp->snd_ssthresh)
		tp->snd_ssthresh = door->threshold;
	if (window > tp->snd_cwnd)
		tp->snd_cwnd = window;
	door->window = 0;
}

SEC(".struct_ops")
struct tcp_congestion_ops door = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "@door..........",
	.init = (void *)door_init,
	.ssthresh = (void *)door_ssthresh,
	.cong_avoid = (void *)door_cong_avoid,
	.pkts_acked = (void *)door_pkts_acked,
	.undo_cwnd = (void *)reno_undo_cwnd,
};
