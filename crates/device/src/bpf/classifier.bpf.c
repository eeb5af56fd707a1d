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

/* One receive ring for each domain on each hardware queue: queue * domains + domain. */
const volatile __u32 domains = 1;

#include "layout.h"
#include "links.h"
#include "limits.h"
#include "merged.h"
#include "packet.h"
#include "tables.h"
#include "discard.h"
#include "refused.h"

/* What may be done with a packet at once. Whoever refuses says so when this is compiled. */
#define REFUSE 1
/* It is one datagram: of several each is judged by its own words, by whoever tells them apart. */
#define DISCARD 2

/* The word of a packet whose flow was found. */
static __always_inline __u32 found(__u32 value, __u8 protocol, struct transport *ends, __u32 room,
				   void *end, int early)
{
	if ((value & INDEX_LISTEN) == INDEX_LISTEN)
		return hint(value >> DOMAIN_SHIFT, HINT_LISTEN);
	if (early & DISCARD && protocol == IPPROTO_UDP && discarded(value, ends, room, end))
		return hint(value >> DOMAIN_SHIFT, HINT_DISCARD);
	return value;
}

/* The word of a packet for the listeners of a domain. Its sender may be `refused`, and there may be too many such
 * segments. */
static __always_inline __u32 listens(__u32 domain, __u8 protocol, int early, int refused)
{
	if (early & REFUSE && refused)
		return hint(domain, HINT_REFUSED);
	if (early & REFUSE && protocol == IPPROTO_TCP && !is_let_in(domain & DOMAIN_MASK))
		return hint(domain, HINT_LIMITED);
	return hint(domain, HINT_LISTEN);
}

#include "ipv4.h"
#include "ipv6.h"

/* The metadata word of the payload of Ethernet, of this type and VLAN, that came over interface `link`; PASS
 * when it is not silk's. `len` is the payload's, `early` REFUSE and DISCARD, or neither. */
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

/* What is behind Ethernet's header and a tag, its VLAN and type; 0: they are not all there. */
static __always_inline void *payload_of(struct ethernet *eth, void *end, __u16 *vid, __u16 *type)
{
	struct tag *tag = (void *)(eth + 1);

	*vid = 0;
	if ((void *)tag > end)
		return 0;
	*type = eth->type;
	if (*type != bpf_htons(TAGGED))
		return tag;
	if ((void *)(tag + 1) > end)
		return 0;
	*vid = bpf_ntohs(tag->tci) & VID;
	*type = tag->type;
	return tag + 1;
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

/* Writes the word right before the frame: the known place of Scout 3.4; before it, where packets may be several,
 * how long each is (`segment`), 0 for one alone: a packet for which there was no room in its ring has left its own there.
 * A driver without metadata leaves the receiver to classify again. */
static __always_inline int write_hint(struct xdp_md *ctx, __u32 link, __u32 segment, __u32 word)
{
	__u32 tells = in_linux >> link & 1, *place;

	if (bpf_xdp_adjust_meta(ctx, tells ? -2 * (int)sizeof(*place) : -(int)sizeof(*place)))
		return 0;
	place = (void *)(long)ctx->data_meta;
	if (tells) {
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

/* Whether a packet that no path owns is let in to Linux. */
static __always_inline int is_left(struct ethernet *eth, void *end, __u32 link)
{
	__u32 zero = 0;
	__u64 *all;

	/* Behind a tag all is where it was, but later. */
	if ((void *)(eth + 1) <= end && eth->type == bpf_htons(TAGGED))
		eth = (void *)eth + sizeof(struct tag);
	if (!is_let_in(finds_neighbours(eth, end) ? LIMIT_NEIGHBOURS(link) : LIMIT_LINUX(link)))
		return 0;
	all = bpf_map_lookup_elem(&passed, &zero);
	if (all)
		++*all;
	return 1;
}

/* The counts of the domain of a packet that a path owns, which is counted; 0: it is to be dropped. */
static __always_inline struct counts *taken(__u32 word)
{
	__u32 domain = word >> DOMAIN_SHIFT & DOMAIN_MASK;
	struct counts *of = bpf_map_lookup_elem(&counts, &domain);

	if (!of || word == hint(domain, HINT_LIMITED))
		return 0;
	if (word == hint(domain, HINT_REFUSED)) {
		of->refused++;
		return 0;
	}
	if (word == hint(domain, HINT_DISCARD)) {
		of->discarded++;
		return 0;
	}
	count(of, word);
	return of;
}

/* In the interface's driver, or where Linux asks the same program. */
SEC("xdp.frags")
int classify(struct xdp_md *ctx)
{
	__u32 zero = 0, link = 0, segment = 0, word = PASS, domain, ring;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	struct ethernet *eth = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end, *payload;
	__u16 vid, type;
	struct counts *of;
	int action;

	if (!set)
		return XDP_PASS;
	if (links > 1)
		link = link_of(ctx->ingress_ifindex);
	payload = payload_of(eth, end, &vid, &type);
	if (payload) {
		segment = merged(ctx, link);
		word = verdict(set, link, vid, type, eth->destination[0] & 1, payload,
			       bpf_xdp_get_buff_len(ctx) - (payload - (void *)eth), end,
			       segment ? REFUSE : REFUSE | DISCARD);
	}
	if (word == PASS)
		return is_left(eth, end, link) ? XDP_PASS : XDP_DROP;
	of = taken(word);
	if (!of)
		return XDP_DROP;
	if (!write_hint(ctx, link, segment, word))
		of->no_hint++;
	domain = word >> DOMAIN_SHIFT & DOMAIN_MASK;
	/* A domain without a ring must not land in that of the next queue's first domain, nor a queue that is not
	 * served in the next interface's rings, whose sockets would drop what comes and count it nowhere. */
	ring = ctx->rx_queue_index * domains + domain;
	ring = domain < domains && ring < rings[link] ? first_rings[link] + ring : ~0U;
	action = bpf_redirect_map(&sockets, ring, XDP_DROP);
	if (action != XDP_REDIRECT)
		of->no_ring++;
	return action;
}

#include "steer.h"
#include "ingress.h"

char _license[] SEC("license") = "Dual MIT/GPL";
