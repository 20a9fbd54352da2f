/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Coupled congestion controls of MPTCP as integer arithmetic: LIA (RFC 6356), OLIA (Khalili et al., CoNEXT 2012), BALIA (Peng et
 * al., ToN 2016) and the fully coupled control (Raiciu et al., 2009). The formulas are those of crates/netsim/src/tcp/congestion/coupled.
 *
 * It compiles in the kernel, for BPF and as a library. Who includes it defines u32, s32, u64 and s64, and COUPLED_FUNCTION as what a function
 * begins with: BPF wants each verified by itself.
 */
#ifndef COUPLED_H
#define COUPLED_H

/* Linux has at most eight subflows beside the first. */
#define COUPLED_FLOWS 9
#define COUPLED_WINDOW_MAX ((1U << 16) - 1)
#define COUPLED_DELIVERED_MAX ((1U << 21) - 1)
/* Fractions: one segment of growth, the whole of all rates, and a round-trip time as long as the longest. */
#define COUPLED_SEGMENT_BITS 32
#define COUPLED_SHARE_BITS 27
#define COUPLED_RATIO_BITS 10
#define COUPLED_RATIO_MAX (1ULL << 20)

enum coupled_rule {
	COUPLED_LIA,
	COUPLED_OLIA,
	COUPLED_BALIA,
	COUPLED_FULLY,
	COUPLED_RULES,
};

/* A subflow: window in segments, smoothed round-trip time, and the segments delivered since its last loss or between the two before. */
struct coupled_flow {
	u32 window;
	u32 rtt_us;
	u32 delivered;
};

/* The subflows that have a window and a round-trip time; the first is the one that the control is asked about. */
struct coupled {
	u32 count;
	struct coupled_flow flow[COUPLED_FLOWS];
};

/* What a subflow remembers: growth below one segment, and deliveries at its last loss and between the two before. */
struct coupled_state {
	s64 credit;
	u32 at_loss;
	u32 between_losses;
};

COUPLED_FUNCTION u64 coupled_total_window(const struct coupled *all)
{
	u64 total = 0;
	u32 i;

	if (!all)
		return 0;
	for (i = 0; i < COUPLED_FLOWS; i++)
		total += all->flow[i].window;
	return total;
}

COUPLED_FUNCTION u64 coupled_longest_rtt(const struct coupled *all)
{
	u64 longest = 1;
	u32 i;

	if (!all)
		return 1;
	for (i = 0; i < COUPLED_FLOWS; i++)
		if (all->flow[i].rtt_us > longest)
			longest = all->flow[i].rtt_us;
	return longest;
}

/* How many times shorter than the longest round trip that of a flow is; 1024 at the most. */
COUPLED_FUNCTION u64 coupled_ratio(u64 longest_us, u32 rtt_us)
{
	u64 ratio = (longest_us << COUPLED_RATIO_BITS) / (rtt_us ? rtt_us : 1);

	return ratio < COUPLED_RATIO_MAX ? ratio : COUPLED_RATIO_MAX;
}

/* Segments in the longest round trip. */
COUPLED_FUNCTION u64 coupled_rate(u64 longest_us, u32 window, u32 rtt_us)
{
	return window * coupled_ratio(longest_us, rtt_us);
}

COUPLED_FUNCTION u64 coupled_total_rate(const struct coupled *all)
{
	u64 longest_us = coupled_longest_rtt(all), total = 0;
	u32 i;

	if (!all)
		return 1;
	for (i = 0; i < COUPLED_FLOWS; i++)
		total += coupled_rate(longest_us, all->flow[i].window, all->flow[i].rtt_us);
	return total ? total : 1;
}

COUPLED_FUNCTION u64 coupled_largest_rate(const struct coupled *all)
{
	u64 longest_us = coupled_longest_rtt(all), largest = 0;
	u32 i;

	if (!all)
		return 1;
	for (i = 0; i < COUPLED_FLOWS; i++) {
		u64 rate = coupled_rate(longest_us, all->flow[i].window, all->flow[i].rtt_us);

		if (rate > largest)
			largest = rate;
	}
	return largest ? largest : 1;
}

/* w / rtt^2 over the square of the sum of w / rtt, which is (share of the rates)^2 / w. */
COUPLED_FUNCTION u64 coupled_kelly(u64 share, u32 window)
{
	u64 squared = share * share >> (2 * COUPLED_SHARE_BITS - COUPLED_SEGMENT_BITS);

	return squared / (window ? window : 1);
}

/* RFC 6356, equations 1 and 2: the largest of all w / rtt^2, and no more than one TCP grows by. */
COUPLED_FUNCTION u64 coupled_lia(const struct coupled *all)
{
	u64 longest_us = coupled_longest_rtt(all), total = coupled_total_rate(all), most = 0, alone;
	u32 i;

	if (!all)
		return 0;
	for (i = 0; i < COUPLED_FLOWS; i++) {
		u64 rate = coupled_rate(longest_us, all->flow[i].window, all->flow[i].rtt_us);
		u64 growth = coupled_kelly((rate << COUPLED_SHARE_BITS) / (total ? total : 1), all->flow[i].window);

		if (growth > most)
			most = growth;
	}
	alone = (1ULL << COUPLED_SEGMENT_BITS) / (all->flow[0].window ? all->flow[0].window : 1);
	return most < alone ? most : alone;
}

/* Peng et al., section 3: x / (rtt (sum x)^2) (1 + a)/2 (4 + a)/5 with a the largest rate over that of the flow. */
COUPLED_FUNCTION u64 coupled_balia(const struct coupled *all)
{
	u64 longest_us = coupled_longest_rtt(all), total = coupled_total_rate(all), largest = coupled_largest_rate(all), own;

	if (!all)
		return 0;
	total = total ? total : 1;
	own = (coupled_rate(longest_us, all->flow[0].window, all->flow[0].rtt_us) << COUPLED_SHARE_BITS) / total;
	largest = (largest << COUPLED_SHARE_BITS) / total;
	return ((4 * own * own + 5 * own * largest + largest * largest) / 10 >>
		(2 * COUPLED_SHARE_BITS - COUPLED_SEGMENT_BITS)) /
	       (all->flow[0].window ? all->flow[0].window : 1);
}

/* How good a path is by its losses: l^2 / rtt. */
COUPLED_FUNCTION u64 coupled_quality(u64 longest_us, u32 delivered, u32 rtt_us)
{
	u64 counted = delivered < COUPLED_DELIVERED_MAX ? delivered : COUPLED_DELIVERED_MAX;

	return rtt_us ? counted * counted * coupled_ratio(longest_us, rtt_us) : 0;
}

COUPLED_FUNCTION u64 coupled_best_quality(const struct coupled *all)
{
	u64 longest_us = coupled_longest_rtt(all), best = 0;
	u32 i;

	if (!all)
		return 0;
	for (i = 0; i < COUPLED_FLOWS; i++) {
		u64 quality = coupled_quality(longest_us, all->flow[i].delivered, all->flow[i].rtt_us);

		if (quality > best)
			best = quality;
	}
	return best;
}

COUPLED_FUNCTION u64 coupled_largest_window(const struct coupled *all)
{
	u64 largest = 1;
	u32 i;

	if (!all)
		return 1;
	for (i = 0; i < COUPLED_FLOWS; i++)
		if (all->flow[i].window > largest)
			largest = all->flow[i].window;
	return largest;
}

/* How many flows have the largest window or, with `better`, are best by their losses and have not. */
COUPLED_FUNCTION u64 coupled_count(const struct coupled *all, u64 best, u64 largest, u32 better)
{
	u64 longest_us = coupled_longest_rtt(all), count = 0;
	u32 i;

	if (!all)
		return 0;
	for (i = 0; i < COUPLED_FLOWS; i++) {
		const u32 window = all->flow[i].window;

		if (!window)
			continue;
		if (better)
			count += window < largest &&
				 coupled_quality(longest_us, all->flow[i].delivered, all->flow[i].rtt_us) >= best;
		else
			count += window >= largest;
	}
	return count;
}

/* Khalili et al., equations 5 and 6: Kelly and Voice's increase, and what moves windows from large ones to the best paths. */
COUPLED_FUNCTION s64 coupled_olia(const struct coupled *all)
{
	u64 longest_us = coupled_longest_rtt(all), total = coupled_total_rate(all);
	u64 best = coupled_best_quality(all), largest = coupled_largest_window(all);
	u64 better = coupled_count(all, best, largest, 1), with_largest = coupled_count(all, best, largest, 0);
	u64 growth, moved, window;

	if (!all)
		return 0;
	window = all->flow[0].window ? all->flow[0].window : 1;
	growth = coupled_kelly((coupled_rate(longest_us, all->flow[0].window, all->flow[0].rtt_us) << COUPLED_SHARE_BITS) /
			       (total ? total : 1), all->flow[0].window);
	if (!better)
		return growth;
	moved = (1ULL << COUPLED_SEGMENT_BITS) / (all->count ? all->count : 1) / window;
	if (all->flow[0].window >= largest)
		return growth - moved / (with_largest ? with_largest : 1);
	if (coupled_quality(longest_us, all->flow[0].delivered, all->flow[0].rtt_us) >= best)
		return growth + moved / better;
	return growth;
}

/* By how much the first flow's window grows with one segment acknowledged in congestion avoidance; negative where it shrinks. */
COUPLED_FUNCTION s64 coupled_increase(const struct coupled *all, u32 rule)
{
	u64 total = coupled_total_window(all);

	switch (rule) {
	case COUPLED_LIA:
		return coupled_lia(all);
	case COUPLED_OLIA:
		return coupled_olia(all);
	case COUPLED_BALIA:
		return coupled_balia(all);
	default:
		return (1ULL << COUPLED_SEGMENT_BITS) / (total ? total : 1);
	}
}

/* What a loss leaves of the first flow's window, two segments at the least. */
COUPLED_FUNCTION u32 coupled_decrease(const struct coupled *all, u32 rule)
{
	u64 longest_us = coupled_longest_rtt(all), largest = coupled_largest_rate(all), half = coupled_total_window(all) / 2;
	u64 window, rate, less;

	if (!all)
		return 2;
	window = all->flow[0].window;
	less = window - window / 2;
	if (rule == COUPLED_FULLY) {
		less = half < window ? half : window;
	} else if (rule == COUPLED_BALIA) {
		/* w / 2 min(a, 1.5) */
		rate = coupled_rate(longest_us, all->flow[0].window, all->flow[0].rtt_us);
		less = window * largest / (2 * (rate ? rate : 1));
		less = less < window * 3 / 4 ? less : window * 3 / 4;
	}
	return less + 2 < window ? window - less : 2;
}

/* Add growth to what is below one segment, and return the window with what has become whole. */
static inline u32 coupled_grow(struct coupled_state *state, s64 growth, u32 window)
{
	const s64 segment = 1LL << COUPLED_SEGMENT_BITS;
	s64 credit = state->credit + growth;
	u64 whole;

	if (credit >= segment) {
		whole = (u64)credit >> COUPLED_SEGMENT_BITS;
		state->credit = credit - (s64)(whole << COUPLED_SEGMENT_BITS);
		return window + whole;
	}
	if (credit <= -segment) {
		whole = (u64)-credit >> COUPLED_SEGMENT_BITS;
		state->credit = credit + (s64)(whole << COUPLED_SEGMENT_BITS);
		return window > whole ? window - whole : 1;
	}
	state->credit = credit;
	return window;
}

/* Segments delivered since the last loss, or between the two before it: the larger. */
static inline u32 coupled_delivered(const struct coupled_state *state, u32 delivered)
{
	u32 since = delivered - state->at_loss;

	return since > state->between_losses ? since : state->between_losses;
}

/* Note a loss. */
static inline void coupled_lost(struct coupled_state *state, u32 delivered)
{
	state->credit = 0;
	state->between_losses = delivered - state->at_loss;
	state->at_loss = delivered;
}

static inline void coupled_add(struct coupled *all, u32 window, u32 rtt_us, u32 delivered)
{
	u32 place = all->count;

	if (!window || !rtt_us || place >= COUPLED_FLOWS)
		return;
	all->flow[place].window = window < COUPLED_WINDOW_MAX ? window : COUPLED_WINDOW_MAX;
	all->flow[place].rtt_us = rtt_us;
	all->flow[place].delivered = delivered;
	all->count = place + 1;
}

#endif
