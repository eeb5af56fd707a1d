// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Where a packet of IPv6 goes: steps 7 to 10 of the specification.

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
	return listens(rule6_domain(word, ip, ends->destination_port, dscp), protocol, early,
		       early & REFUSE && is_refused6(set, word, ip));
}

/* A datagram to a group. */
static __always_inline __u32 group6_verdict(struct settings *set, __u64 word, struct ipv6 *ip,
					    struct transport *ends, int early)
{
	__u32 local = local6_index(set, word, ip->destination, 1);
	__u8 dscp = (ip->version_class << 2 | ip->class_flow >> 6) & 0x3f;

	if (local == ADDRESSES6 || !owns_port(ends->destination_port, 15 - local, IPPROTO_UDP))
		return PASS;
	return listens(rule6_domain(word, ip, ends->destination_port, dscp), IPPROTO_UDP, early,
		       early & REFUSE && is_refused6(set, word, ip));
}

/* Where the packet that an ICMPv6 error quotes at `quote` was sent, PASS when it was none of ours. */
static __always_inline __u32 quoted_flow6(struct settings *set, __u64 word, void *quote, __u32 room, void *end)
{
	struct ipv6 *ip = quote;
	struct transport *ends = (void *)(ip + 1);
	__u8 *fragment = (void *)ends, protocol;
	__u32 value;

	if (room < sizeof(*ip) + 8 || (void *)(ends + 1) > end || ip->version_class >> 4 != 6)
		return PASS;
	protocol = ip->next_header;
	/* Of a datagram that we have cut up the first piece has the ports. */
	if (protocol == IPPROTO_FRAGMENT && !fragment[2] && !(fragment[3] & 0xf8)) {
		protocol = fragment[0];
		ends++;
		if (room < sizeof(*ip) + 16 || (void *)(ends + 1) > end)
			return PASS;
	}
	if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)
		return PASS;
	value = flow6(set, ip->source, ends->source_port, ip->destination, ends->destination_port, protocol);
	if (value)
		return hint(value >> DOMAIN_SHIFT, HINT_CONTROL);
	if (protocol != IPPROTO_UDP)
		return PASS;
	value = local6_index(set, word, ip->source, 0);
	if (value == ADDRESSES6 || !owns_port(ends->source_port, 15 - value, IPPROTO_UDP))
		return PASS;
	return hint(domain_of(word, CONTROL_SHIFT), HINT_CONTROL);
}

/* Whether an ICMPv6 message is an echo request to all nodes, ff02::1. */
static __always_inline int pings_all(struct ipv6 *ip, struct transport *icmp)
{
	return icmp->icmp_type == ICMP6_ECHO_REQUEST && ip->destination[0] == bpf_cpu_to_be64(0xff02ULL << 48) &&
	       ip->destination[1] == bpf_cpu_to_be64(1);
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
		return group6_verdict(set, word, ip, transport, early);
	if (protocol == IPPROTO_UDP || (protocol == IPPROTO_TCP && room >= 20))
		return group ? PASS : ports6_verdict(set, word, ip, protocol, transport, room, end, early);
	if (protocol != IPPROTO_ICMPV6)
		return PASS;
	if (transport->icmp_type >= ND_FIRST && transport->icmp_type <= ND_LAST)
		return word & OWN_ARP ? hint(domain_of(word, CONTROL_SHIFT), HINT_CONTROL) : PASS;
	if (group ? !pings_all(ip, transport) : local6_index(set, word, ip->destination, 0) == ADDRESSES6)
		return PASS;
	if (transport->icmp_type >= 1 && transport->icmp_type <= ICMP6_LAST_ERROR) {
		value = quoted_flow6(set, word, transport + 1, room - 8, end);
		if (value != PASS)
			return value;
	}
	return word & OWN_ICMP ? hint(domain_of(word, CONTROL_SHIFT), HINT_CONTROL) : PASS;
}
