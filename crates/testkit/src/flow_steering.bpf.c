// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Puts the IPv4 packets of one sender on a queue of their own, and all others on the first: what a network card
// does by flow steering when they arrive. On a veth it is the sending host that can say it.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* What a program here answers (linux/bpf.h has it since Linux 6.6). */
#define EGRESS_NEXT (-1)

/* Whose packets, in network byte order, and which queue, from 0. Set when it is loaded. */
const volatile __u32 source;
const volatile __u32 queue;

SEC("classifier")
int choose_queue(struct __sk_buff *skb)
{
	void *end = (void *)(long)skb->data_end;
	struct ethhdr *eth = (void *)(long)skb->data;
	struct iphdr *ip = (void *)(eth + 1);
	int own = (void *)(ip + 1) <= end && eth->h_proto == bpf_htons(ETH_P_IP) && ip->saddr == source;

	/* Linux counts them from 1: 0 is that nobody has said anything. */
	skb->queue_mapping = (own ? queue : 0) + 1;
	return EGRESS_NEXT;
}

char _license[] SEC("license") = "Dual MIT/GPL";
