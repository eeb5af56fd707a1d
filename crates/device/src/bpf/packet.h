// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Headers of packets, as far as they are looked at.

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
