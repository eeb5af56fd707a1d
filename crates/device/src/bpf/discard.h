// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Early discard: packets that their path does not want, step 11 of the specification.

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
