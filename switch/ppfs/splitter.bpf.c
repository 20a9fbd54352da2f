// SPDX-License-Identifier: Apache-2.0
/*
 * PPFS at the ingress port: draws a path for every packet of a split flow and stamps it into the packet.
 *
 * The stamp is the Ethernet source address; the OpenFlow rules of the path match it. A packet of any other flow,
 * an IP fragment, anything that is not TCP or UDP directly in IPv4 or IPv6 passes as it is. The uses of the kernel are all
 * UAPI, so that the object loads on any kernel from 5.9 on, with BTF or without.
 *
 * The sizes below are those of split.py.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#define SECTION(name) __attribute__((section(name), used))
#define UINT(name, value) int(*name)[value]
#define TYPE(name, type) type *name
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define MAX_FLOWS 1024
#define MAX_PATHS 16
#define FRAGMENT 0x3fff /* more fragments follow, or this is not the first */

#define NULL ((void *)0)

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define TO_NETWORK_16(value) __builtin_bswap16(value)
#define MAPPED 0xffff0000 /* ::ffff:0:0/96 */
#else
#define TO_NETWORK_16(value) (value)
#define MAPPED 0x0000ffff
#endif

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static __u32 (*bpf_get_prandom_u32)(void) = (void *)BPF_FUNC_get_prandom_u32;

/* Addresses and ports in network byte order; those of IPv4 are mapped (RFC 4291, 2.5.5.2). */
struct flow_key {
	__be32 source[4];
	__be32 destination[4];
	__be16 source_port;
	__be16 destination_port;
	__u8 protocol;
	__u8 zero[3];
};

/* Path i takes the draws (of 32 bits) from thresholds[i - 1] up to, but not including, thresholds[i]. */
struct split {
	__u64 thresholds[MAX_PATHS];
	__u8 stamps[MAX_PATHS][ETH_ALEN];
};

struct count {
	__u64 packets;
	__u64 bytes;
};

struct counters {
	struct count paths[MAX_PATHS];
};

/*
 * A split is a map of its own, written before it is put into `flows` and never after. The kernel exchanges it in
 * one step, and returns to the loader when no program uses the old one any more: no packet sees half a split.
 */
struct split_map {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, 1);
	UINT(key_size, sizeof(__u32));
	UINT(value_size, sizeof(struct split));
};

struct {
	UINT(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	UINT(max_entries, MAX_FLOWS);
	UINT(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, struct flow_key);
	UINT(value_size, sizeof(__u32));
	struct split_map *values[];
} flows SECTION(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_PERCPU_HASH);
	UINT(max_entries, MAX_FLOWS);
	UINT(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, struct flow_key);
	TYPE(value, struct counters);
} counters SECTION(".maps");

/* Fill the addresses and protocol of `key`; returns where the packet's ports are, or NULL. */
static ALWAYS_INLINE void *read_ipv4(struct iphdr *ip, void *end, struct flow_key *key)
{
	__u32 header;

	if ((void *)(ip + 1) > end)
		return NULL;
	header = ip->ihl * 4;
	if (ip->version != 4 || header < sizeof(*ip) || ip->frag_off & TO_NETWORK_16(FRAGMENT))
		return NULL;
	key->source[2] = key->destination[2] = MAPPED;
	key->source[3] = ip->saddr;
	key->destination[3] = ip->daddr;
	key->protocol = ip->protocol;
	return (void *)ip + header;
}

static ALWAYS_INLINE void *read_ipv6(struct ipv6hdr *ip, void *end, struct flow_key *key)
{
	if ((void *)(ip + 1) > end || ip->version != 6)
		return NULL;
	__builtin_memcpy(key->source, &ip->saddr, sizeof(key->source));
	__builtin_memcpy(key->destination, &ip->daddr, sizeof(key->destination));
	key->protocol = ip->nexthdr;
	return ip + 1;
}

/* Return 1 and fill `key` if the frame is a whole packet of TCP or UDP. */
static ALWAYS_INLINE int read_key(void *data, void *end, struct flow_key *key)
{
	struct ethhdr *ethernet = data;
	struct udphdr *ports = NULL; /* TCP's ports are at the same place */

	if ((void *)(ethernet + 1) > end)
		return 0;
	if (ethernet->h_proto == TO_NETWORK_16(ETH_P_IP))
		ports = read_ipv4((void *)(ethernet + 1), end, key);
	else if (ethernet->h_proto == TO_NETWORK_16(ETH_P_IPV6))
		ports = read_ipv6((void *)(ethernet + 1), end, key);
	if (!ports || (void *)(ports + 1) > end)
		return 0;
	if (key->protocol != IPPROTO_TCP && key->protocol != IPPROTO_UDP)
		return 0;
	key->source_port = ports->source;
	key->destination_port = ports->dest;
	return 1;
}

/* Draw a path; MAX_PATHS if the split has none, which the loader never writes. */
static ALWAYS_INLINE __u32 draw_path(const struct split *split)
{
	__u64 draw = bpf_get_prandom_u32();
	__u32 path;

	for (path = 0; path < MAX_PATHS; path++)
		if (draw < split->thresholds[path])
			break;
	return path;
}

SECTION("xdp")
int split_packets(struct xdp_md *packet)
{
	void *data = (void *)(long)packet->data;
	void *end = (void *)(long)packet->data_end;
	struct flow_key key = {};
	struct counters *counted;
	struct split *split;
	__u32 path, zero = 0;
	void *split_map;

	if (!read_key(data, end, &key))
		return XDP_PASS;
	split_map = bpf_map_lookup_elem(&flows, &key);
	if (!split_map)
		return XDP_PASS;
	split = bpf_map_lookup_elem(split_map, &zero);
	if (!split)
		return XDP_PASS;
	path = draw_path(split);
	if (path >= MAX_PATHS)
		return XDP_PASS;
	__builtin_memcpy(((struct ethhdr *)data)->h_source, split->stamps[path], ETH_ALEN);
	counted = bpf_map_lookup_elem(&counters, &key);
	if (counted) {
		counted->paths[path].packets += 1;
		counted->paths[path].bytes += end - data;
	}
	return XDP_PASS;
}

char license_text[] SECTION("license") = "Apache-2.0";

/* By this the build tells whether an object is of this source; no program reads it. */
const char source_text_sha256[] SECTION("source_sha256") = SOURCE_SHA256;
