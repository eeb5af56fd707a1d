// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The words of the classifier's tables, as crates/path/src/classify/layout.rs lays them out, and the maps that
// hold them.

#define TAGGED 0x8100
#define VID 0x0fff

#define BUCKET_WORDS 8
#define HOMES_PER_LINE 64
#define VALUE_VALID (1U << 31)
#define VALUE_UDP (1U << 30)
#define DOMAIN_SHIFT 24
#define DOMAIN_MASK 0x3f
#define INDEX_LISTEN 0x00ffffffU
#define MATCH_MASK (((__u64)(VALUE_VALID | VALUE_UDP) << 32) | 0xffffffffULL)

#define PORTS 65536
#define PORTS_PER_LINE 16
#define PORT_UDP_SHIFT 16

#define RULES 64
#define RULE_WORDS 6
#define RULE_ANY_DSCP (1ULL << 32)
#define RULE_NOT_V4 (1ULL << 33)
#define RULE_NOT_V6 (1ULL << 34)

#define REFUSED 16384
#define RANGE6_WORDS 4
#define REFUSED_BANK_WORDS (REFUSED * (1 + RANGE6_WORDS))
/* Of a search in one bank: more halvings than there are ranges. */
#define REFUSED_STEPS 15

#define ADDRESSES 16
#define ADDRESSES6 8
#define EXTENSIONS 4
#define EXTENSION_BYTES 128
#define OWN_ARP 1
#define OWN_ICMP 2
#define OWN_FRAGMENTS 4
#define DEFAULT_SHIFT 8
#define FRAGMENT_SHIFT 16
#define CONTROL_SHIFT 24
#define BANK_SHIFT 32
#define REFUSED_BANK_SHIFT 33
#define RULE_COUNT_SHIFT 40
#define ADDRESS_COUNT_SHIFT 48
#define ADDRESS6_COUNT_SHIFT 56

#define HINT_LISTEN 1
#define HINT_FRAGMENT 2
#define HINT_CONTROL 3
#define HINT_DISCARD 4
/* Never written before a frame: beyond its domain's limit. */
#define HINT_LIMITED 5
/* The same: its sender is refused. */
#define HINT_REFUSED 6

#define DISCARDS 256
#define DISCARD_WORDS 4
#define DISCARD_HAS_LEAST (1ULL << 32)
#define DISCARD_MFLOW 1
#define DISCARD_RTP 2
#define MFLOW_DATA 0x10
#define MFLOW_NEEDED (4 | 8)
#define RTP_MASK 0xdf
#define RTP_PLAIN 0x80
#define KIND_B 3

#define HASH_K1 0x9e3779b97f4a7c15ULL
#define HASH_K2 0xd6e8feb86659fd93ULL

#define ICMP_UNREACHABLE 3
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETER_PROBLEM 12

#define ICMP6_LAST_ERROR 4
#define ICMP6_ECHO_REQUEST 128
/* MLD's too. */
#define ND_FIRST 130
#define ND_LAST 137

/* What is not silk's: no domain and no hint. */
#define PASS 0

struct bucket {
	__u64 words[BUCKET_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct bucket);
} flows SEC(".maps");

/* A byte for each bucket. */
struct homes_line {
	__u8 counts[HOMES_PER_LINE];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct homes_line);
} homes SEC(".maps");

/* An array rounds its elements up to eight bytes, so sixteen ports share one element. */
struct ports_line {
	__u32 words[PORTS_PER_LINE];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PORTS / PORTS_PER_LINE);
	__type(key, __u32);
	__type(value, struct ports_line);
} ports SEC(".maps");

struct rule {
	__u64 words[RULE_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * RULES);
	__type(key, __u32);
	__type(value, struct rule);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * REFUSED_BANK_WORDS);
	__type(key, __u32);
	__type(value, __u64);
} refused SEC(".maps");

struct settings {
	__u64 word;
	__u64 seed;
	__u32 addresses[ADDRESSES];
	__u64 seed2;
	__u64 addresses6[2 * ADDRESSES6];
	/* 16 bits for each interface. */
	__u64 vlans;
	/* Ranges of IPv4, and of IPv6 in the upper half, in each bank of who is refused. */
	__u64 refused[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct discard {
	__u64 words[DISCARD_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, DISCARDS);
	__type(key, __u32);
	__type(value, struct discard);
} discards SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* Of one domain; `Counts` in xdp/program.rs reads them by position. */
struct counts {
	__u64 path;
	__u64 listen;
	__u64 fragment;
	__u64 control;
	__u64 no_ring;
	__u64 no_hint;
	__u64 discarded;
	__u64 refused;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DOMAIN_MASK + 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} passed SEC(".maps");
