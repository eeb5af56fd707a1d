/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * How long the datagrams are that were left as one packet: by Linux, which merges what arrives (GRO), or
 * by a veth's neighbour, which leaves it to the device to cut what its program sent (UDP_SEGMENT). XDP
 * does not tell. But where the program runs in Linux's receive path its buffer is a socket buffer's, and
 * that says so in the words at its end. In a driver those words may be anything: they are not read there. */

#include <bpf/bpf_core_read.h>

/* Over which interfaces the program runs in Linux's receive path, a bit for each. Set when it is loaded. */
const volatile __u32 in_linux = 0;

#define CACHE_LINE 64

/* As much of the kernel's types as is read; where it is, the kernel tells when the program is loaded. */
struct xdp_buff {
	void *data_hard_start;
	__u32 frame_sz;
} __attribute__((preserve_access_index));

struct skb_shared_info {
	__u16 gso_size;
	unsigned int gso_type;
} __attribute__((preserve_access_index));

/* One datagram that a device was to cut into fragments (SKB_GSO_UDP of linux/skbuff.h): it is whole. */
#define TO_FRAGMENT (1 << 16)

/* The payload bytes of each of the packets that this one was merged of, 0 when it is one alone. */
static __always_inline __u32 merged(struct xdp_md *ctx, __u32 link)
{
	struct xdp_buff *buffer = (void *)ctx;
	__u32 tail = bpf_core_type_size(struct skb_shared_info);
	struct skb_shared_info *info;
	unsigned int type = 0;
	__u16 size = 0;

	if (!(in_linux >> link & 1))
		return 0;
	tail = (tail + CACHE_LINE - 1) & ~(CACHE_LINE - 1);
	info = BPF_CORE_READ(buffer, data_hard_start) + BPF_CORE_READ(buffer, frame_sz) - tail;
	if (bpf_core_read(&size, sizeof(size), &info->gso_size) ||
	    bpf_core_read(&type, sizeof(type), &info->gso_type))
		return 0;
	return type & TO_FRAGMENT ? 0 : size;
}
