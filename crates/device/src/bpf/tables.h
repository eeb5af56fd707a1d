// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// What the tables say: of a flow, of an address and a port, of a packet's class.

static __always_inline __u32 hint(__u32 domain, __u32 kind)
{
	return (domain & DOMAIN_MASK) << DOMAIN_SHIFT | kind;
}

static __always_inline __u32 domain_of(__u64 settings_word, int shift)
{
	return settings_word >> shift & 0xff;
}

/* The value of the flow in one bucket, 0 when it is not there. The order of the loads is the
 * one that layout.rs asks of a reader: a writer may be at work. */
static __always_inline __u32 in_bucket(__u32 index, __u64 key, __u64 want)
{
	struct bucket *bucket = bpf_map_lookup_elem(&flows, &index);
	__u64 valid = want | (__u64)VALUE_VALID << 32;

	if (!bucket)
		return 0;
#pragma unroll
	for (int entry = 0; entry < BUCKET_WORDS; entry += 2) {
		volatile __u64 *words = &bucket->words[entry];
		__u64 state = words[1];

		if ((state & MATCH_MASK) == valid && words[0] == key && words[1] == state)
			return state >> 32;
	}
	return 0;
}

/* Whether no flow is at home in this bucket. */
static __always_inline int is_empty(__u32 bucket)
{
	__u32 line_index = bucket / HOMES_PER_LINE;
	struct homes_line *line = bpf_map_lookup_elem(&homes, &line_index);

	return !line || !*(volatile __u8 *)&line->counts[bucket % HOMES_PER_LINE];
}

static __always_inline __u32 find_flow(struct settings *set, __u32 mask, __u64 key, __u64 want)
{
	__u64 h = (key ^ set->seed) * HASH_K1;
	__u32 first, second, value;

	h ^= h >> 32;
	h = (h ^ want) * HASH_K2;
	h ^= h >> 32;
	first = (__u32)h & mask;
	second = (__u32)(h >> 32) & mask;
	if (is_empty(first))
		return 0;
	value = in_bucket(first, key, want);
	if (!value)
		value = in_bucket(first ^ 1, key, want);
	if (!value)
		value = in_bucket(second, key, want);
	if (!value)
		value = in_bucket(second ^ 1, key, want);
	return value;
}

/* Buckets of the flow table, less one. Set when it is loaded. */
const volatile __u32 bucket_mask = 3;

static __always_inline __u32 flow(struct settings *set, __u32 local, __u16 local_port, __u32 remote,
				  __u16 remote_port, __u8 protocol)
{
	__u64 key = (__u64)local_port << 48 | (__u64)remote_port << 32 | remote;
	__u64 want = local | (protocol == IPPROTO_UDP ? (__u64)VALUE_UDP << 32 : 0);

	return find_flow(set, bucket_mask, key, want);
}

/* Which local address this is, ADDRESSES when it is none. With `group`: which of the groups. */
static __always_inline __u32 local_index(struct settings *set, __u64 word, __u32 address, int group)
{
	__u32 count = word >> ADDRESS_COUNT_SHIFT & 0xff;
	__u32 first = group ? count : 0, behind = count;

	if (group) {
		if (!address)
			return ADDRESSES;
		behind = ADDRESSES - (ADDRESSES - count < ADDRESSES6 ? ADDRESSES - count : ADDRESSES6);
	}
#pragma unroll
	for (__u32 i = 0; i < ADDRESSES; i++)
		if (i >= first && i < behind && set->addresses[i] == address)
			return i;
	return ADDRESSES;
}

static __always_inline int owns_port(__u16 port, __u32 address_index, __u8 protocol)
{
	__u32 number = bpf_ntohs(port);
	__u32 line_index = number / PORTS_PER_LINE;
	struct ports_line *line = bpf_map_lookup_elem(&ports, &line_index);
	__u32 bit = address_index + (protocol == IPPROTO_UDP ? PORT_UDP_SHIFT : 0);

	return line && (line->words[number % PORTS_PER_LINE] >> bit & 1);
}

/* Whether what a rule says beside the source fits. */
static __always_inline int fits(__u64 what, __u16 port, __u8 dscp)
{
	if ((what & 0xffff) && (what & 0xffff) != port)
		return 0;
	return (what & RULE_ANY_DSCP) || (what >> 16 & 0xff) == dscp;
}

/* The domain of the first rule that matches, or the default domain. */
static __always_inline __u32 rule_domain(__u64 word, __u32 source, __u16 port, __u8 dscp)
{
	__u32 bank = word >> BANK_SHIFT & 1;
	__u32 count = word >> RULE_COUNT_SHIFT & 0xff;

	for (__u32 i = 0; i < RULES; i++) {
		__u32 index = bank * RULES + i;
		struct rule *rule;
		__u64 prefix, what;

		if (i >= count)
			break;
		rule = bpf_map_lookup_elem(&rules, &index);
		if (!rule)
			break;
		prefix = rule->words[0];
		what = rule->words[1];
		if ((what & RULE_NOT_V4) || (source & (__u32)(prefix >> 32)) != (__u32)prefix)
			continue;
		if (!fits(what, port, dscp))
			continue;
		return what >> 24 & 0xff;
	}
	return domain_of(word, DEFAULT_SHIFT);
}

/* The same for IPv6. */
static __always_inline __u32 rule6_domain(__u64 word, struct ipv6 *ip, __u16 port, __u8 dscp)
{
	__u32 bank = word >> BANK_SHIFT & 1;
	__u32 count = word >> RULE_COUNT_SHIFT & 0xff;
	__u64 first = ip->source[0], second = ip->source[1];

	for (__u32 i = 0; i < RULES; i++) {
		__u32 index = bank * RULES + i;
		struct rule *rule;
		__u64 what;

		if (i >= count)
			break;
		rule = bpf_map_lookup_elem(&rules, &index);
		if (!rule)
			break;
		what = rule->words[1];
		if ((what & RULE_NOT_V6) || (first & rule->words[4]) != rule->words[2] ||
		    (second & rule->words[5]) != rule->words[3])
			continue;
		if (!fits(what, port, dscp))
			continue;
		return what >> 24 & 0xff;
	}
	return domain_of(word, DEFAULT_SHIFT);
}
