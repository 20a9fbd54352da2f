/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TCP-DOOR at the sender (Wang and Zhang, MobiHoc 2002): once segments have arrived out of order, the window is not reduced for a time T1
 * (section 3.3.1), and a reduction of the past T2 is taken back (section 3.3.2). Both times are the retransmission timeout.
 *
 * Times are jiffies, as 32 bits that wrap. Who includes it defines u32 and s32.
 */
#ifndef DOOR_H
#define DOOR_H

struct door {
	u32 reordered;
	u32 hold_until;
	u32 reduced_at;
	u32 window;
	u32 threshold;
};

static inline int door_holds(const struct door *door, u32 now)
{
	return door->hold_until && (s32)(door->hold_until - now) > 0;
}

/* What a loss leaves of a window. */
static inline u32 door_threshold(struct door *door, u32 now, u32 window, u32 threshold)
{
	if (door_holds(door, now))
		return window;
	door->reduced_at = now;
	door->window = window;
	door->threshold = threshold;
	return window > 5 ? window / 2 : 2;
}

/* Note how often segments have been seen out of order; whether `window` and `threshold` are to be restored. */
static inline int door_looks(struct door *door, u32 now, u32 timeout, u32 reordered)
{
	if (reordered == door->reordered)
		return 0;
	door->reordered = reordered;
	door->hold_until = now + timeout ? now + timeout : 1;
	return door->window && now - door->reduced_at <= timeout;
}

#endif
