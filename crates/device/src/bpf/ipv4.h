// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Where a packet of IPv4 goes.

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
	return listens(rule_domain(word, ip->source, ends->destination_port, ip->tos >> 2), ip->protocol, early,
		       early & REFUSE && is_refused(set, word, ip));
}

/* A datagram to a group. */
static __always_inline __u32 group_verdict(struct settings *set, __u64 word, struct ipv4 *ip,
					   struct transport *ends, int early)
{
	__u32 local = local_index(set, word, ip->destination, 1);

	if (local == ADDRESSES || !owns_port(ends->destination_port, local, IPPROTO_UDP))
		return PASS;
	return listens(rule_domain(word, ip->source, ends->destination_port, ip->tos >> 2), IPPROTO_UDP, early,
		       early & REFUSE && is_refused(set, word, ip));
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
		return ip->protocol == IPPROTO_UDP ? group_verdict(set, word, ip, transport, early) : PASS;
	if (ip->protocol == IPPROTO_UDP || (ip->protocol == IPPROTO_TCP && room >= 20))
		return ports_verdict(set, word, ip, transport, room, end, early);
	if (ip->protocol == IPPROTO_ICMP && local_index(set, word, ip->destination, 0) != ADDRESSES)
		return icmp_verdict(set, word, transport->icmp_type, transport + 1, room - 8, end);
	return PASS;
}
