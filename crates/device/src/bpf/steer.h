// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The same classification for devices whose packets Linux hands over.

/* All headers that are looked at, each as long as it can be: Ethernet, IPv6 and its extension headers,
 * ICMP, the quoted IP, its fragment header and its ports. What IPv4 needs is less. */
#define HEAD (14 + 40 + EXTENSION_BYTES + 8 + 40 + 8 + 8)

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
