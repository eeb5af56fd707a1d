// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The classifier at interrupt time (Scout 3.4, design 4): packet -> path and domain, before
// anything is queued. It evaluates the specification of crates/path/src/classify/layout.rs,
// word for word; a property test demands the same answers of both, so neither changes alone.
// It must never take a packet that no path owns, and writes to a table nothing but counts.
// Beside it stands what is not let in at all (limits.h).

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define TAGGED 0x8100
#define VID 0x0fff

#define BUCKET_WORDS 8
#define VALUE_VALID (1U << 31)
#define VALUE_UDP (1U << 30)
#define DOMAIN_SHIFT 24
#define DOMAIN_MASK 0x3f
#define INDEX_LISTEN 0x00ffffffU
#define MATCH_MASK (((__u64)(VALUE_VALID | VALUE_UDP) << 32) | 0xffffffffULL)

#define PORTS 65536
#define PORTS_PER_LINE 16
#define PORT_UDP_SHIFT 16

#define RULES 64
#define RULE_WORDS 6
#define RULE_ANY_DSCP (1ULL << 32)
#define RULE_NOT_V4 (1ULL << 33)
#define RULE_NOT_V6 (1ULL << 34)

#define ADDRESSES 16
#define ADDRESSES6 8
#define EXTENSIONS 4
#define EXTENSION_BYTES 128
#define OWN_ARP 1
#define OWN_ICMP 2
#define OWN_FRAGMENTS 4
#define DEFAULT_SHIFT 8
#define FRAGMENT_SHIFT 16
#define CONTROL_SHIFT 24
#define BANK_SHIFT 32
#define RULE_COUNT_SHIFT 40
#define ADDRESS_COUNT_SHIFT 48
#define ADDRESS6_COUNT_SHIFT 56

#define HINT_LISTEN 1
#define HINT_FRAGMENT 2
#define HINT_CONTROL 3
#define HINT_DISCARD 4
/* Never written before a frame: beyond its domain's limit. */
#define HINT_LIMITED 5

#define DISCARDS 256
#define DISCARD_WORDS 4
#define DISCARD_HAS_LEAST (1ULL << 32)
#define DISCARD_MFLOW 1
#define DISCARD_RTP 2
#define MFLOW_DATA 0x10
#define MFLOW_NEEDED (4 | 8)
#define RTP_MASK 0xdf
#define RTP_PLAIN 0x80
#define KIND_B 3

#define HASH_K1 0x9e3779b97f4a7c15ULL
#define HASH_K2 0xd6e8feb86659fd93ULL

#define ICMP_UNREACHABLE 3
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETER_PROBLEM 12

#define ICMP6_LAST_ERROR 4
/* MLD's too. */
#define ND_FIRST 130
#define ND_LAST 137

/* What is not silk's: no domain and no hint. */
#define PASS 0

/* One receive ring for each domain on each hardware queue: queue * domains + domain. */
const volatile __u32 domains = 1;

/* The most interfaces it can be attached to. */
#define LINKS 4
/* How many they are, which, and where the rings of each begin. Set when it is loaded: with one, the kernel
 * leaves out all that tells them apart. */
const volatile __u32 links = 1;
const volatile __u32 interfaces[LINKS];
const volatile __u32 first_rings[LINKS];

/* 1 where both are the same, else 0: without a branch, after each side of which the verifier would walk
 * through all that follows. */
static __always_inline __u32 same(__u32 a, __u32 b)
{
	__u64 less = (__u64)(a ^ b) - 1;

	/* Or the compiler finds out what it is. */
	asm volatile("" : "+r"(less));
	return less >> 63;
}

/* The place of an interface among them; 0 for one that is none of them. */
static __always_inline __u32 link_of(struct xdp_md *ctx)
{
	__u32 interface, link = 0;

	if (links > 1) {
		interface = ctx->ingress_ifindex;
		/* There is no interface 0, which stands for those that are not there. */
		for (__u32 i = 1; i < LINKS; i++)
			link |= same(interface, interfaces[i]) * i;
	}
	return link & (LINKS - 1);
}

struct bucket {
	__u64 words[BUCKET_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct bucket);
} flows SEC(".maps");

/* An array rounds its elements up to eight bytes, so sixteen ports share one element. */
struct ports_line {
	__u32 words[PORTS_PER_LINE];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PORTS / PORTS_PER_LINE);
	__type(key, __u32);
	__type(value, struct ports_line);
} ports SEC(".maps");

struct rule {
	__u64 words[RULE_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * RULES);
	__type(key, __u32);
	__type(value, struct rule);
} rules SEC(".maps");

struct settings {
	__u64 word;
	__u64 seed;
	__u32 addresses[ADDRESSES];
	__u64 seed2;
	__u64 addresses6[2 * ADDRESSES6];
	/* 16 bits for each interface. */
	__u64 vlans;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct discard {
	__u64 words[DISCARD_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, DISCARDS);
	__type(key, __u32);
	__type(value, struct discard);
} discards SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* Of one domain; `Counts` in xdp/program.rs reads them by position. */
struct counts {
	__u64 path;
	__u64 listen;
	__u64 fragment;
	__u64 control;
	__u64 no_ring;
	__u64 no_hint;
	__u64 discarded;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DOMAIN_MASK + 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} passed SEC(".maps");

#include "limits.h"
#include "merged.h"

struct ethernet {
	__u8 destination[6];
	__u8 source[6];
	__u16 type;
} __attribute__((packed));

/* Of a virtual LAN, behind Ethernet's header. */
struct tag {
	__u16 tci;
	__u16 type;
} __attribute__((packed));

struct ipv4 {
	__u8 version_ihl;
	__u8 tos;
	__u16 total_length;
	__u16 identification;
	__u16 fragment;
	__u8 ttl;
	__u8 protocol;
	__u16 checksum;
	__u32 source;
	__u32 destination;
} __attribute__((packed));

/* Not packed: halves of addresses are loaded whole, wherever they lie in a packet. */
struct ipv6 {
	__u8 version_class;
	__u8 class_flow;
	__u16 flow;
	__u16 payload_length;
	__u8 next_header;
	__u8 hop_limit;
	__u64 source[2];
	__u64 destination[2];
};

/* The ports of TCP or UDP, or the type of ICMP: the first eight bytes of the transport. */
struct transport {
	union {
		struct {
			__u16 source_port;
			__u16 destination_port;
		};
		__u8 icmp_type;
	};
	__u32 rest;
} __attribute__((packed));

/* What is behind UDP of MFLOW, and of RTP with the header of RFC 2250: as far as it is looked at. */
struct framed {
	__u8 first;
	__u8 flags;
	__u8 mflow_kind;
	__u8 coding;
	__u32 rtp_stamp;
	__u32 mflow_stamp;
	__u8 unused[2];
	__u8 rtp_kind;
	__u8 motion;
} __attribute__((packed));

static __always_inline __u32 hint(__u32 domain, __u32 kind)
{
	return (domain & DOMAIN_MASK) << DOMAIN_SHIFT | kind;
}

static __always_inline __u32 domain_of(__u64 settings_word, int shift)
{
	return settings_word >> shift & 0xff;
}

/* The value of the flow in one bucket, 0 when it is not there. The order of the loads is the
 * one that layout.rs asks of a reader: a writer may be at work. */
static __always_inline __u32 in_bucket(__u32 index, __u64 key, __u64 want)
{
	struct bucket *bucket = bpf_map_lookup_elem(&flows, &index);
	__u64 valid = want | (__u64)VALUE_VALID << 32;

	if (!bucket)
		return 0;
#pragma unroll
	for (int entry = 0; entry < BUCKET_WORDS; entry += 2) {
		volatile __u64 *words = &bucket->words[entry];
		__u64 state = words[1];

		if ((state & MATCH_MASK) == valid && words[0] == key && words[1] == state)
			return state >> 32;
	}
	return 0;
}

static __always_inline __u32 find_flow(struct settings *set, __u32 mask, __u64 key, __u64 want)
{
	__u64 h = (key ^ set->seed) * HASH_K1;
	__u32 first, second, value;

	h ^= h >> 32;
	h = (h ^ want) * HASH_K2;
	h ^= h >> 32;
	first = (__u32)h & mask;
	second = (__u32)(h >> 32) & mask;
	value = in_bucket(first, key, want);
	if (!value)
		value = in_bucket(first ^ 1, key, want);
	if (!value)
		value = in_bucket(second, key, want);
	if (!value)
		value = in_bucket(second ^ 1, key, want);
	return value;
}

/* Buckets of the flow table, less one. Set when it is loaded. */
const volatile __u32 bucket_mask = 3;

static __always_inline __u32 flow(struct settings *set, __u32 local, __u16 local_port, __u32 remote,
				  __u16 remote_port, __u8 protocol)
{
	__u64 key = (__u64)local_port << 48 | (__u64)remote_port << 32 | remote;
	__u64 want = local | (protocol == IPPROTO_UDP ? (__u64)VALUE_UDP << 32 : 0);

	return find_flow(set, bucket_mask, key, want);
}

/* Which local address this is, ADDRESSES when it is none. With `group`: which of the groups. */
static __always_inline __u32 local_index(struct settings *set, __u64 word, __u32 address, int group)
{
	__u32 count = word >> ADDRESS_COUNT_SHIFT & 0xff;
	__u32 first = group ? count : 0, behind = count;

	if (group) {
		if (!address)
			return ADDRESSES;
		behind = ADDRESSES - (ADDRESSES - count < ADDRESSES6 ? ADDRESSES - count : ADDRESSES6);
	}
#pragma unroll
	for (__u32 i = 0; i < ADDRESSES; i++)
		if (i >= first && i < behind && set->addresses[i] == address)
			return i;
	return ADDRESSES;
}

static __always_inline int owns_port(__u16 port, __u32 address_index, __u8 protocol)
{
	__u32 number = bpf_ntohs(port);
	__u32 line_index = number / PORTS_PER_LINE;
	struct ports_line *line = bpf_map_lookup_elem(&ports, &line_index);
	__u32 bit = address_index + (protocol == IPPROTO_UDP ? PORT_UDP_SHIFT : 0);

	return line && (line->words[number % PORTS_PER_LINE] >> bit & 1);
}

/* Whether what a rule says beside the source fits. */
static __always_inline int fits(__u64 what, __u16 port, __u8 dscp)
{
	if ((what & 0xffff) && (what & 0xffff) != port)
		return 0;
	return (what & RULE_ANY_DSCP) || (what >> 16 & 0xff) == dscp;
}

/* The domain of the first rule that matches, or the default domain. */
static __always_inline __u32 rule_domain(__u64 word, __u32 source, __u16 port, __u8 dscp)
{
	__u32 bank = word >> BANK_SHIFT & 1;
	__u32 count = word >> RULE_COUNT_SHIFT & 0xff;

	for (__u32 i = 0; i < RULES; i++) {
		__u32 index = bank * RULES + i;
		struct rule *rule;
		__u64 prefix, what;

		if (i >= count)
			break;
		rule = bpf_map_lookup_elem(&rules, &index);
		if (!rule)
			break;
		prefix = rule->words[0];
		what = rule->words[1];
		if ((what & RULE_NOT_V4) || (source & (__u32)(prefix >> 32)) != (__u32)prefix)
			continue;
		if (!fits(what, port, dscp))
			continue;
		return what >> 24 & 0xff;
	}
	return domain_of(word, DEFAULT_SHIFT);
}

/* The same for IPv6. */
static __always_inline __u32 rule6_domain(__u64 word, struct ipv6 *ip, __u16 port, __u8 dscp)
{
	__u32 bank = word >> BANK_SHIFT & 1;
	__u32 count = word >> RULE_COUNT_SHIFT & 0xff;
	__u64 first = ip->source[0], second = ip->source[1];

	for (__u32 i = 0; i < RULES; i++) {
		__u32 index = bank * RULES + i;
		struct rule *rule;
		__u64 what;

		if (i >= count)
			break;
		rule = bpf_map_lookup_elem(&rules, &index);
		if (!rule)
			break;
		what = rule->words[1];
		if ((what & RULE_NOT_V6) || (first & rule->words[4]) != rule->words[2] ||
		    (second & rule->words[5]) != rule->words[3])
			continue;
		if (!fits(what, port, dscp))
			continue;
		return what >> 24 & 0xff;
	}
	return domain_of(word, DEFAULT_SHIFT);
}

/* Whether the packet of this flow is not wanted: step 11 of the specification. `room` is what the
 * packet has from UDP's header at `udp` on. */
static __always_inline int discarded(__u32 value, struct transport *udp, __u32 room, void *end)
{
	__u32 index = value & (DISCARDS - 1), kind, stamp, every;
	struct discard *entry = bpf_map_lookup_elem(&discards, &index);
	struct framed *data = (void *)(udp + 1);
	volatile __u64 *words;
	__u64 what, least;

	if (!entry)
		return 0;
	words = entry->words;
	what = words[0];
	if ((__u32)what != value || room < sizeof(*udp) + sizeof(*data) || (void *)(data + 1) > end)
		return 0;
	least = words[1];
	if (words[0] != what)
		return 0;
	every = what >> 48;
	switch (what >> 32 & 0xff) {
	case DISCARD_MFLOW:
		if (data->first != MFLOW_DATA || data->flags & MFLOW_NEEDED)
			return 0;
		kind = data->mflow_kind;
		stamp = bpf_ntohl(data->mflow_stamp);
		break;
	case DISCARD_RTP:
		if ((data->first & RTP_MASK) != RTP_PLAIN)
			return 0;
		kind = data->rtp_kind & 7;
		stamp = bpf_ntohl(data->rtp_stamp);
		every = 1;
		break;
	default:
		return 0;
	}
	if (!(kind < 8 && what >> 40 >> kind & 1) &&
	    !(kind < 8 && least >> 40 >> kind & 1 && every > 1 && stamp % every) &&
	    !(kind == KIND_B && (least & DISCARD_HAS_LEAST) && (__s32)(stamp - (__u32)least) < 0))
		return 0;
	__sync_fetch_and_add(&entry->words[2], 1);
	return 1;
}

/* The word of a packet whose flow was found. `early`: it may be discarded. */
static __always_inline __u32 found(__u32 value, __u8 protocol, struct transport *ends, __u32 room,
				   void *end, int early)
{
	if ((value & INDEX_LISTEN) == INDEX_LISTEN)
		return hint(value >> DOMAIN_SHIFT, HINT_LISTEN);
	if (early && protocol == IPPROTO_UDP && discarded(value, ends, room, end))
		return hint(value >> DOMAIN_SHIFT, HINT_DISCARD);
	return value;
}

/* The word of a packet for the listeners of a domain. `early`: there may be too many such segments. */
static __always_inline __u32 listens(__u32 domain, __u8 protocol, int early)
{
	if (early && protocol == IPPROTO_TCP && !is_let_in(domain & DOMAIN_MASK))
		return hint(domain, HINT_LIMITED);
	return hint(domain, HINT_LISTEN);
}

static __always_inline __u32 ports_verdict(struct settings *set, __u64 word, struct ipv4 *ip,
					   struct transport *ends, __u32 room, void *end, int early)
{
	__u32 value = flow(set, ip->destination, ends->destination_port, ip->source, ends->source_port,
			   ip->protocol);
	__u32 local;

	if (value)
		return found(value, ip->protocol, ends, room, end, early);
	local = local_index(set, word, ip->destination, 0);
	if (local == ADDRESSES || !owns_port(ends->destination_port, local, ip->protocol))
		return PASS;
	return listens(rule_domain(word, ip->source, ends->destination_port, ip->tos >> 2), ip->protocol,
		       early);
}

/* A datagram to a group. */
static __always_inline __u32 group_verdict(struct settings *set, __u64 word, struct ipv4 *ip,
					   struct transport *ends)
{
	__u32 local = local_index(set, word, ip->destination, 1);

	if (local == ADDRESSES || !owns_port(ends->destination_port, local, IPPROTO_UDP))
		return PASS;
	return hint(rule_domain(word, ip->source, ends->destination_port, ip->tos >> 2), HINT_LISTEN);
}

/* Where the packet that an ICMP error quotes at `quote` was sent, PASS when it was none of ours. `room`
 * is what is left of the packet there. */
static __always_inline __u32 quoted_flow(struct settings *set, __u64 word, void *quote, __u32 room, void *end)
{
	struct ipv4 *ip = quote;
	struct transport *ends;
	__u32 header, value;

	if (room < sizeof(*ip) || (void *)(ip + 1) > end)
		return PASS;
	header = (ip->version_ihl & 0xf) * 4;
	if (ip->version_ihl >> 4 != 4 || header < sizeof(*ip) || room < header + 8)
		return PASS;
	if (ip->fragment & bpf_htons(0x1fff))
		return PASS;
	if (ip->protocol != IPPROTO_TCP && ip->protocol != IPPROTO_UDP)
		return PASS;
	ends = quote + header;
	if ((void *)(ends + 1) > end)
		return PASS;
	value = flow(set, ip->source, ends->source_port, ip->destination, ends->destination_port,
		     ip->protocol);
	if (value)
		return hint(value >> DOMAIN_SHIFT, HINT_CONTROL);
	if (ip->protocol != IPPROTO_UDP)
		return PASS;
	value = local_index(set, word, ip->source, 0);
	if (value == ADDRESSES || !owns_port(ends->source_port, value, IPPROTO_UDP))
		return PASS;
	return hint(domain_of(word, CONTROL_SHIFT), HINT_CONTROL);
}

static __always_inline __u32 icmp_verdict(struct settings *set, __u64 word, __u8 type, void *quote,
					  __u32 room, void *end)
{
	if (type == ICMP_UNREACHABLE || type == ICMP_TIME_EXCEEDED || type == ICMP_PARAMETER_PROBLEM) {
		__u32 verdict = quoted_flow(set, word, quote, room, end);

		if (verdict != PASS)
			return verdict;
	}
	return word & OWN_ICMP ? hint(domain_of(word, CONTROL_SHIFT), HINT_CONTROL) : PASS;
}

/* `len` is what the packet has from its IP header on; `end` is where its readable bytes end. */
static __always_inline __u32 ipv4_verdict(struct settings *set, __u64 word, void *packet, __u32 len,
					  void *end, int group, int early)
{
	struct ipv4 *ip = packet;
	struct transport *transport;
	__u32 header, total, room;

	if ((void *)(ip + 1) > end)
		return PASS;
	header = (ip->version_ihl & 0xf) * 4;
	total = bpf_ntohs(ip->total_length);
	if (ip->version_ihl >> 4 != 4 || header < sizeof(*ip) || header > total || total > len)
		return PASS;
	if (ip->fragment & bpf_htons(0x3fff)) {
		if (group || !(word & OWN_FRAGMENTS) || local_index(set, word, ip->destination, 0) == ADDRESSES)
			return PASS;
		return hint(domain_of(word, FRAGMENT_SHIFT), HINT_FRAGMENT);
	}
	room = total - header;
	transport = packet + header;
	if (room < 8 || (void *)(transport + 1) > end)
		return PASS;
	if (ip->protocol == IPPROTO_IGMP)
		return word & OWN_ARP ? hint(domain_of(word, CONTROL_SHIFT), HINT_CONTROL) : PASS;
	if (group)
		return ip->protocol == IPPROTO_UDP ? group_verdict(set, word, ip, transport) : PASS;
	if (ip->protocol == IPPROTO_UDP || (ip->protocol == IPPROTO_TCP && room >= 20))
		return ports_verdict(set, word, ip, transport, room, end, early);
	if (ip->protocol == IPPROTO_ICMP && local_index(set, word, ip->destination, 0) != ADDRESSES)
		return icmp_verdict(set, word, transport->icmp_type, transport + 1, room - 8, end);
	return PASS;
}

static __always_inline __u64 rotate(__u64 word, int by)
{
	return word << by | word >> (64 - by);
}

#define SIPROUND                                                                                   \
	do {                                                                                       \
		a += b, b = rotate(b, 13) ^ a, a = rotate(a, 32);                                  \
		c += d, d = rotate(d, 16) ^ c;                                                     \
		a += d, d = rotate(d, 21) ^ a;                                                     \
		c += b, b = rotate(b, 17) ^ c, c = rotate(c, 32);                                  \
	} while (0)

#define ABSORB(word) (d ^= (word), ({ SIPROUND; }), a ^= (word))

/* The value of a flow over IPv6, by its fingerprint (fingerprint.rs). */
static __always_inline __u32 flow6(struct settings *set, const __u64 *local, __u16 local_port,
				   const __u64 *remote, __u16 remote_port, __u8 protocol)
{
	__u64 a = set->seed ^ 0x736f6d6570736575ULL, b = set->seed2 ^ 0x646f72616e646f6dULL ^ 0xee;
	__u64 c = set->seed ^ 0x6c7967656e657261ULL, d = set->seed2 ^ 0x7465646279746573ULL;
	__u64 key, want;

	ABSORB(remote[0]);
	ABSORB(remote[1]);
	ABSORB(local[0]);
	ABSORB(local[1]);
	ABSORB(remote_port | (__u64)local_port << 16);
	c ^= 0xee;
	SIPROUND;
	SIPROUND;
	SIPROUND;
	key = a ^ b ^ c ^ d;
	b ^= 0xdd;
	SIPROUND;
	SIPROUND;
	SIPROUND;
	want = (__u32)(a ^ b ^ c ^ d);
	if (protocol == IPPROTO_UDP)
		want |= (__u64)VALUE_UDP << 32;
	return find_flow(set, bucket_mask, key, want);
}

/* Which local address this is, ADDRESSES6 when it is none. With `group`: which of the groups. */
static __always_inline __u32 local6_index(struct settings *set, __u64 word, const __u64 *address, int group)
{
	__u32 count = word >> ADDRESS6_COUNT_SHIFT & 0xff, four = word >> ADDRESS_COUNT_SHIFT & 0xff;
	__u64 first = address[0], second = address[1];
	__u32 from = group ? count : 0, behind = count;

	if (group) {
		if (!(first | second))
			return ADDRESSES6;
		behind = ADDRESSES - four < ADDRESSES6 ? ADDRESSES - four : ADDRESSES6;
	}
#pragma unroll
	for (__u32 i = 0; i < ADDRESSES6; i++)
		if (i >= from && i < behind && set->addresses6[2 * i] == first && set->addresses6[2 * i + 1] == second)
			return i;
	return ADDRESSES6;
}

static __always_inline __u32 ports6_verdict(struct settings *set, __u64 word, struct ipv6 *ip,
					    __u8 protocol, struct transport *ends, __u32 room,
					    void *end, int early)
{
	__u32 value = flow6(set, ip->destination, ends->destination_port, ip->source, ends->source_port,
			    protocol);
	__u32 local;
	__u8 dscp;

	if (value)
		return found(value, protocol, ends, room, end, early);
	local = local6_index(set, word, ip->destination, 0);
	if (local == ADDRESSES6 || !owns_port(ends->destination_port, 15 - local, protocol))
		return PASS;
	dscp = (ip->version_class << 2 | ip->class_flow >> 6) & 0x3f;
	return listens(rule6_domain(word, ip, ends->destination_port, dscp), protocol, early);
}

/* A datagram to a group. */
static __always_inline __u32 group6_verdict(struct settings *set, __u64 word, struct ipv6 *ip,
					    struct transport *ends)
{
	__u32 local = local6_index(set, word, ip->destination, 1);
	__u8 dscp = (ip->version_class << 2 | ip->class_flow >> 6) & 0x3f;

	if (local == ADDRESSES6 || !owns_port(ends->destination_port, 15 - local, IPPROTO_UDP))
		return PASS;
	return hint(rule6_domain(word, ip, ends->destination_port, dscp), HINT_LISTEN);
}

/* Where the packet that an ICMPv6 error quotes at `quote` was sent, PASS when it was none of ours. */
static __always_inline __u32 quoted_flow6(struct settings *set, __u64 word, void *quote, __u32 room, void *end)
{
	struct ipv6 *ip = quote;
	struct transport *ends = (void *)(ip + 1);
	__u32 value;

	if (room < sizeof(*ip) + 8 || (void *)(ends + 1) > end || ip->version_class >> 4 != 6)
		return PASS;
	if (ip->next_header != IPPROTO_TCP && ip->next_header != IPPROTO_UDP)
		return PASS;
	value = flow6(set, ip->source, ends->source_port, ip->destination, ends->destination_port,
		      ip->next_header);
	if (value)
		return hint(value >> DOMAIN_SHIFT, HINT_CONTROL);
	if (ip->next_header != IPPROTO_UDP)
		return PASS;
	value = local6_index(set, word, ip->source, 0);
	if (value == ADDRESSES6 || !owns_port(ends->source_port, 15 - value, IPPROTO_UDP))
		return PASS;
	return hint(domain_of(word, CONTROL_SHIFT), HINT_CONTROL);
}

/* Steps 7 to 10 of the specification. */
static __always_inline __u32 ipv6_verdict(struct settings *set, __u64 word, void *packet, __u32 len,
					  void *end, int group, int early)
{
	struct ipv6 *ip = packet;
	struct transport *transport;
	__u32 at = 0, total, room, value;
	int fragment = 0, walking = 1;
	__u8 protocol;

	if ((void *)(ip + 1) > end)
		return PASS;
	total = bpf_ntohs(ip->payload_length);
	if (ip->version_class >> 4 != 6 || total + sizeof(*ip) > len)
		return PASS;
	protocol = ip->next_header;
#pragma unroll
	for (int i = 0; i < EXTENSIONS; i++) {
		__u8 *header = (void *)(ip + 1) + at;
		__u32 length = 8;

		if (!walking || (protocol != 0 && protocol != 43 && protocol != 60 && protocol != 44)) {
			walking = 0;
			continue;
		}
		if ((void *)(header + 8) > end || at + 8 > total)
			return PASS;
		if (protocol == 44) {
			if (header[2] || (header[3] & 0xf9)) {
				fragment = 1;
				walking = 0;
			}
		} else {
			length = (header[1] + 1) * 8;
		}
		protocol = header[0];
		if (length > EXTENSION_BYTES - at || at + length > total)
			return PASS;
		at += length;
		/* For the verifier, which has lost sight of it; the compiler has not. */
		asm volatile("" : "+r"(at));
		if (at > EXTENSION_BYTES)
			return PASS;
	}
	if (fragment) {
		if (group || !(word & OWN_FRAGMENTS) || local6_index(set, word, ip->destination, 0) == ADDRESSES6)
			return PASS;
		return hint(domain_of(word, FRAGMENT_SHIFT), HINT_FRAGMENT);
	}
	room = total - at;
	transport = (void *)(ip + 1) + at;
	if (room < 8 || (void *)(transport + 1) > end)
		return PASS;
	if (group && protocol == IPPROTO_UDP)
		return group6_verdict(set, word, ip, transport);
	if (protocol == IPPROTO_UDP || (protocol == IPPROTO_TCP && room >= 20))
		return group ? PASS : ports6_verdict(set, word, ip, protocol, transport, room, end, early);
	if (protocol != IPPROTO_ICMPV6)
		return PASS;
	if (transport->icmp_type >= ND_FIRST && transport->icmp_type <= ND_LAST)
		return word & OWN_ARP ? hint(domain_of(word, CONTROL_SHIFT), HINT_CONTROL) : PASS;
	if (group || local6_index(set, word, ip->destination, 0) == ADDRESSES6)
		return PASS;
	if (transport->icmp_type >= 1 && transport->icmp_type <= ICMP6_LAST_ERROR) {
		value = quoted_flow6(set, word, transport + 1, room - 8, end);
		if (value != PASS)
			return value;
	}
	return word & OWN_ICMP ? hint(domain_of(word, CONTROL_SHIFT), HINT_CONTROL) : PASS;
}

/* The metadata word of the payload of Ethernet, of this type and VLAN, that came over interface `link`; PASS
 * when it is not silk's. `len` is the payload's. `early`, known when this is compiled: what its path does not want is to be
 * discarded. */
static __always_inline __u32 verdict(struct settings *set, __u32 link, __u16 vid, __u16 type, int group,
				     void *payload, __u32 len, void *end, int early)
{
	__u64 word = *(volatile __u64 *)&set->word;

	if (vid != (__u16)(set->vlans >> 16 * link))
		return PASS;
	if (type == bpf_htons(ETH_P_ARP))
		return word & OWN_ARP ? hint(domain_of(word, CONTROL_SHIFT), HINT_CONTROL) : PASS;
	if (type == bpf_htons(ETH_P_IPV6))
		return ipv6_verdict(set, word, payload, len, end, group, early);
	if (type != bpf_htons(ETH_P_IP))
		return PASS;
	return ipv4_verdict(set, word, payload, len, end, group, early);
}

/* The same for a whole frame, at interrupt time. */
static __always_inline __u32 frame_verdict(struct settings *set, __u32 link, void *frame, __u32 len, void *end)
{
	struct ethernet *eth = frame;
	struct tag *tag = (void *)(eth + 1);
	void *payload = tag;
	__u16 vid = 0, type;

	if ((void *)tag > end)
		return PASS;
	type = eth->type;
	if (type == bpf_htons(TAGGED)) {
		if ((void *)(tag + 1) > end)
			return PASS;
		vid = bpf_ntohs(tag->tci) & VID;
		type = tag->type;
		payload = tag + 1;
	}
	return verdict(set, link, vid, type, eth->destination[0] & 1, payload, len - (payload - frame), end,
		       1);
}

static __always_inline void count(struct counts *of, __u32 word)
{
	if (word & VALUE_VALID)
		of->path++;
	else if ((word & 0xff) == HINT_LISTEN)
		of->listen++;
	else if ((word & 0xff) == HINT_FRAGMENT)
		of->fragment++;
	else
		of->control++;
}

/* Writes the word right before the frame: the known place of Scout 3.4; before it, where the packet is
 * several, how long each is. A driver without metadata leaves the receiver to classify again. */
static __always_inline int write_hint(struct xdp_md *ctx, __u32 link, __u32 word)
{
	__u32 segment = merged(ctx, link), *place;

	if (bpf_xdp_adjust_meta(ctx, segment ? -2 * (int)sizeof(*place) : -(int)sizeof(*place)))
		return 0;
	place = (void *)(long)ctx->data_meta;
	if (segment) {
		if ((void *)(place + 1) > (void *)(long)ctx->data)
			return 0;
		*place++ = segment;
	}
	if ((void *)(place + 1) > (void *)(long)ctx->data)
		return 0;
	*place = word;
	return 1;
}

/* Whether a packet that is Linux's is one of those by which neighbours find each other. */
static __always_inline int finds_neighbours(struct ethernet *eth, void *end)
{
	struct ipv6 *ip = (void *)(eth + 1);
	struct transport *icmp = (void *)(ip + 1);

	if ((void *)ip > end)
		return 0;
	if (eth->type == bpf_htons(ETH_P_ARP))
		return 1;
	return eth->type == bpf_htons(ETH_P_IPV6) && (void *)(icmp + 1) <= end &&
	       ip->next_header == IPPROTO_ICMPV6 && icmp->icmp_type >= ND_FIRST &&
	       icmp->icmp_type <= ND_LAST;
}

/* What becomes of a packet that no path owns. */
static __always_inline int leave(struct xdp_md *ctx, __u32 link)
{
	__u32 zero = 0;
	__u64 *all;
	void *end = (void *)(long)ctx->data_end;
	struct ethernet *eth = (void *)(long)ctx->data;
	int neighbours;

	/* Behind a tag all is where it was, but later. */
	if ((void *)(eth + 1) <= end && eth->type == bpf_htons(TAGGED))
		eth = (void *)eth + sizeof(struct tag);
	neighbours = finds_neighbours(eth, end);
	if (!is_let_in(neighbours ? LIMIT_NEIGHBOURS(link) : LIMIT_LINUX(link)))
		return XDP_DROP;
	all = bpf_map_lookup_elem(&passed, &zero);
	if (all)
		++*all;
	return XDP_PASS;
}

SEC("xdp.frags")
int classify(struct xdp_md *ctx)
{
	__u32 zero = 0, link = link_of(ctx), word, domain, ring;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	struct counts *of;
	int action;

	if (!set)
		return XDP_PASS;
	word = frame_verdict(set, link, (void *)(long)ctx->data, bpf_xdp_get_buff_len(ctx),
			     (void *)(long)ctx->data_end);
	if (word == PASS)
		return leave(ctx, link);
	domain = word >> DOMAIN_SHIFT & DOMAIN_MASK;
	if (word == hint(domain, HINT_LIMITED))
		return XDP_DROP;
	of = bpf_map_lookup_elem(&counts, &domain);
	if (!of)
		return XDP_PASS;
	if (word == hint(domain, HINT_DISCARD)) {
		of->discarded++;
		return XDP_DROP;
	}
	count(of, word);
	if (!write_hint(ctx, link, word))
		of->no_hint++;
	/* A domain without a ring must not land in that of the next queue's first domain. */
	ring = domain < domains ? first_rings[link] + ctx->rx_queue_index * domains + domain : ~0U;
	action = bpf_redirect_map(&sockets, ring, XDP_DROP);
	if (action != XDP_REDIRECT)
		of->no_ring++;
	return action;
}

/* All headers that are looked at, each as long as it can be: Ethernet, IPv6 and its extension headers,
 * ICMP, the quoted IP and its ports. What IPv4 needs is less. */
#define HEAD (14 + 40 + EXTENSION_BYTES + 8 + 40 + 8)

/* Copies the packet's headers from Ethernet's on, but for a tag, whose VLAN goes to `vid`, and answers
 * how much is behind Ethernet's; 0: they cannot be read. Whatever is behind it may lie outside of the
 * packet's first piece of memory, where only offsets from its data on lead. A tap's data begin with
 * Ethernet's header, those of a packet socket behind it. A tag is mostly kept apart by Linux. */
static __always_inline __u32 load(struct __sk_buff *skb, __u8 *head, __u16 *vid)
{
	struct ethernet *eth = (void *)head;
	struct tag tag;
	__u8 first[ETH_HLEN], differs = 0;
	__u32 at = 0, len, i;

	if (bpf_skb_load_bytes_relative(skb, 0, head, ETH_HLEN, BPF_HDR_START_MAC))
		return 0;
	if (!bpf_skb_load_bytes(skb, 0, first, ETH_HLEN)) {
#pragma unroll
		for (i = 0; i < ETH_HLEN; i++)
			differs |= first[i] ^ head[i];
		if (!differs)
			at = ETH_HLEN;
	}
	if (skb->vlan_present) {
		/* Another protocol's tag is none of ours, whatever it says. */
		*vid = skb->vlan_proto == bpf_htons(TAGGED) ? skb->vlan_tci & VID : 0xffff;
	} else if (eth->type == bpf_htons(TAGGED)) {
		if (bpf_skb_load_bytes(skb, at, &tag, sizeof(tag)))
			return 0;
		*vid = bpf_ntohs(tag.tci) & VID;
		eth->type = tag.type;
		at += sizeof(tag);
	}
	len = skb->len - at;
	if (len > HEAD - ETH_HLEN)
		len = HEAD - ETH_HLEN;
	if (!len || bpf_skb_load_bytes(skb, at, head + ETH_HLEN, len))
		return 0;
	return skb->len - at;
}

/* The same for devices whose packets Linux hands over: the fan-out of a packet socket, or the
 * queues of a tap, one for each domain. It chooses among silk's own, so it takes nothing from
 * Linux, and user space asks again who owns the packet. */
SEC("socket")
int steer(struct __sk_buff *skb)
{
	/* What is behind Ethernet's header is to be aligned. */
	__u8 room[HEAD + 2] __attribute__((aligned(8))) = {}, *head = room + 2;
	struct ethernet *eth = (void *)head;
	__u16 vid = 0;
	__u32 zero = 0, len = load(skb, head, &vid), word, domain;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);

	if (!set || !len)
		return 0;
	word = verdict(set, 0, vid, eth->type, eth->destination[0] & 1, eth + 1, len, head + HEAD, 0);
	domain = word == PASS ? domain_of(set->word, CONTROL_SHIFT) : word >> DOMAIN_SHIFT & DOMAIN_MASK;
	return domain < domains ? domain : 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
