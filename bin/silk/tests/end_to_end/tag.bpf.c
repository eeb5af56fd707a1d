// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A virtual LAN for a host of the tests, whose kernel may have no interfaces for them: whatever leaves
// gets the tag of VLAN 100, as from such an interface, and nothing comes in but what has it. A tag that is there
// already stays.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define VLAN 100

SEC("tc/push")
int push(struct __sk_buff *skb)
{
	if (!skb->vlan_present && skb->protocol != bpf_htons(ETH_P_8021Q))
		bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), VLAN);
	return TC_ACT_OK;
}

SEC("tc/pop")
int pop(struct __sk_buff *skb)
{
	if (!skb->vlan_present || (skb->vlan_tci & 0xfff) != VLAN)
		return TC_ACT_SHOT;
	bpf_skb_vlan_pop(skb);
	return TC_ACT_OK;
}

char _license[] SEC("license") = "Dual MIT/GPL";
