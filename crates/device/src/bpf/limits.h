// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// How many packets that belong to no path of their own are let in each second, on each CPU that
// receives: segments for a domain's listeners, what is Linux's, and the questions of neighbours. It is
// no part of the classification, which is the same whatever is let in. Without limits, as all
// are at first, nothing is counted.

/* The limits by number: of each domain's listeners, then for each interface of Linux and of neighbours. */
#define LIMIT_LINUX(link) (DOMAIN_MASK + 1 + 2 * (link))
#define LIMIT_NEIGHBOURS(link) (DOMAIN_MASK + 2 + 2 * (link))
#define LIMITS LIMIT_LINUX(LINKS)

#define SECOND 1000000000ULL

/* `Limit` in xdp/program.rs writes them by position. */
struct limit {
	/* Packets in a second; 0: as many as come. */
	__u64 rate;
	/* Packets at once, at first and after a silence. */
	__u64 burst;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LIMITS);
	__type(key, __u32);
	__type(value, struct limit);
} limits SEC(".maps");

struct allowance {
	/* In parts of a packet, SECOND of them. */
	__u64 left;
	__u64 since;
	/* Packets that were dropped; `xdp/program.rs` reads it by position. */
	__u64 dropped;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LIMITS);
	__type(key, __u32);
	__type(value, struct allowance);
} allowances SEC(".maps");

/* Whether one more packet is let in: a token bucket. */
static __always_inline int is_let_in(__u32 number)
{
	struct limit *limit = bpf_map_lookup_elem(&limits, &number);
	struct allowance *own;
	__u64 now, passed, full;

	if (!limit || !limit->rate)
		return 1;
	own = bpf_map_lookup_elem(&allowances, &number);
	if (!own)
		return 1;
	now = bpf_ktime_get_ns();
	passed = now - own->since;
	own->since = now;
	full = limit->burst * SECOND;
	own->left += (passed < SECOND ? passed : SECOND) * limit->rate;
	if (own->left > full || passed == now)
		own->left = full;
	if (own->left < SECOND) {
		own->dropped++;
		return 0;
	}
	own->left -= SECOND;
	return 1;
}
