// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The same at the ingress of traffic control, where Linux has made a socket buffer of a packet and before any
// protocol of its own sees it. Nothing is copied: what is silk's is marked with its word and said to be for
// another host, which Linux's IP drops at first sight, and a packet socket that asks for the mark
// receives (crates/device/src/xdp/ingress.rs). A mark and a kind are no part of the packet, so a program
// that is gone leaves nothing behind.

#include <linux/if_packet.h>

/* What a program here answers (linux/bpf.h has it since Linux 6.6). */
#define INGRESS_NEXT (-1)
#define INGRESS_PASS 0
#define INGRESS_DROP 2

/* Whether a packet is TCP right behind an IP without options, its ports within reach: the rest is not looked at,
 * and is mostly in other pieces of memory, from which it would have to be copied. */
static __always_inline int is_plain_tcp(struct ethernet *eth, void *end)
{
	struct ipv4 *four = (void *)(eth + 1);
	struct ipv6 *six = (void *)(eth + 1);

	if ((void *)(four + 1) + sizeof(struct transport) > end)
		return 0;
	if (eth->type == bpf_htons(ETH_P_IP))
		return four->version_ihl == 0x45 && four->protocol == IPPROTO_TCP;
	return eth->type == bpf_htons(ETH_P_IPV6) &&
	       (void *)(six + 1) + sizeof(struct transport) <= end && six->next_header == IPPROTO_TCP;
}

/* How many packets were marked, by link, domain and whether they are IPv6: the receiver reads it to know
 * whether there is anything, without asking the kernel. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LINKS * (DOMAIN_MASK + 1) * 2);
	__type(key, __u32);
	__type(value, __u64);
} marked SEC(".maps");

static __always_inline void count_marked(__u32 link, __u32 word, int six)
{
	__u32 place = (link * (DOMAIN_MASK + 1) + (word >> DOMAIN_SHIFT & DOMAIN_MASK)) * 2 + six;
	__u64 *of = bpf_map_lookup_elem(&marked, &place);

	if (of)
		__sync_fetch_and_add(of, 1);
}

/* By this name another daemon knows that the interface is taken. */
SEC("classifier")
int silk_ingress(struct __sk_buff *skb)
{
	__u32 zero = 0, link = 0, word = PASS, head = HEAD;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	struct ethernet *eth = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end, *payload;
	struct counts *of;
	__u16 vid, type;

	if (!set)
		return INGRESS_NEXT;
	if (links > 1)
		link = link_of(skb->ifindex);
	if (head > skb->len)
		head = skb->len;
	if ((void *)eth + head > end && !is_plain_tcp(eth, end)) {
		/* One that cannot be read is looked at as far as it can. */
		bpf_skb_pull_data(skb, head);
		eth = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
	}
	payload = payload_of(eth, end, &vid, &type);
	/* Linux keeps tags apart. One of another protocol is none of ours, whatever it says, nor is one of two. */
	if (skb->vlan_present)
		vid = skb->vlan_proto == bpf_htons(TAGGED) && payload == eth + 1 ? skb->vlan_tci & VID : 0xffff;
	if (payload)
		word = verdict(set, link, vid, type, eth->destination[0] & 1, payload,
			       skb->len - (payload - (void *)eth), end,
			       skb->gso_size ? REFUSE : REFUSE | DISCARD);
	if (word == PASS)
		return is_left(eth, end, link) ? INGRESS_NEXT : INGRESS_DROP;
	of = taken(word);
	if (!of)
		return INGRESS_DROP;
	skb->mark = word;
	/* A domain without sockets must not land in another's. */
	if ((word >> DOMAIN_SHIFT & DOMAIN_MASK) >= domains) {
		of->no_ring++;
		return INGRESS_DROP;
	}
	/* Or an interface of Linux's for that VLAN would have it. The receiver knows which it was. */
	if (skb->vlan_present || payload != eth + 1)
		bpf_skb_vlan_pop(skb);
	count_marked(link, word, type == bpf_htons(ETH_P_IPV6));
	bpf_skb_change_type(skb, PACKET_OTHERHOST);
	return INGRESS_PASS;
}
