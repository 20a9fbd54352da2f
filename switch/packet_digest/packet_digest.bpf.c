// SPDX-License-Identifier: Apache-2.0
/*
 * A digest of every packet that a network interface sends or receives, and of when it does.
 *
 * A socket filter that keeps nothing of the packets: it sees them all through one packet socket of their network
 * namespace, adds each to the digest of its interface and drops the socket's copy. Interfaces that are not in
 * `interfaces` are passed over.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#define SECTION(name) __attribute__((section(name), used))
#define UINT(name, value) int(*name)[value]
#define TYPE(name, type) type *name
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define MAX_INTERFACES 16384
#define HEAD_WORDS 7 /* Ethernet, IPv4 and TCP headers, without the last two bytes of padding */

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static __u64 (*bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*bpf_skb_load_bytes)(const void *skb, __u32 offset, void *to, __u32 length) =
	(void *)BPF_FUNC_skb_load_bytes;

/* Times are counted from `start_ns` of CLOCK_MONOTONIC; packets before it are passed over. */
struct digest {
	__u64 start_ns;
	__u64 packets;
	__u64 bytes;
	__u64 hash;
};

struct {
	UINT(type, BPF_MAP_TYPE_HASH);
	UINT(max_entries, MAX_INTERFACES);
	TYPE(key, __u32);
	TYPE(value, struct digest);
} interfaces SECTION(".maps");

/* The finaliser of splitmix64: every bit of the digest depends on every bit that was added. */
static ALWAYS_INLINE __u64 add(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0xbf58476d1ce4e5b9ULL;
	return hash ^ (hash >> 31);
}

SECTION("socket")
int digest_packets(struct __sk_buff *packet)
{
	__u64 head[HEAD_WORDS] = {};
	__u32 interface = packet->ifindex;
	struct digest *digest = bpf_map_lookup_elem(&interfaces, &interface);
	__u64 now_ns = bpf_ktime_get_ns();
	__u64 hash;
	int word;

	if (!digest || now_ns < digest->start_ns)
		return 0;
	bpf_skb_load_bytes(packet, 0, head, sizeof(head)); /* of a shorter packet the zeros count */
	hash = add(digest->hash, now_ns - digest->start_ns);
	hash = add(hash, ((__u64)packet->pkt_type << 32) | packet->len);
#pragma unroll
	for (word = 0; word < HEAD_WORDS; word++)
		hash = add(hash, head[word]);
	digest->hash = hash;
	digest->packets += 1;
	digest->bytes += packet->len;
	return 0;
}

char license_text[] SECTION("license") = "Apache-2.0";

/* By this the build tells whether an object is of this source; no program reads it. */
const char source_text_sha256[] SECTION("source_sha256") = SOURCE_SHA256;
