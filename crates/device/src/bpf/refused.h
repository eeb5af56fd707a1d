// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Who is refused: ranges of addresses, searched by halving.

struct search {
	/* The address, a number: of IPv4 in the second half. */
	__u64 first_half;
	__u64 second_half;
	/* The word of the first range. */
	__u32 base;
	/* Among these ranges it may be. */
	__u32 low;
	__u32 high;
	int found;
};

static __always_inline __u64 refused_word(__u32 index)
{
	volatile __u64 *word = bpf_map_lookup_elem(&refused, &index);

	return word ? *word : 0;
}

/* One halving of IPv4's; 1: it is over. */
static long halve4(__u32 step, struct search *search)
{
	__u32 middle = search->low + (search->high - search->low) / 2;
	__u64 range;

	(void)step;
	if (search->low >= search->high)
		return 1;
	range = refused_word(search->base + middle);
	if (search->second_half < (__u32)range)
		search->high = middle;
	else if (search->second_half > range >> 32)
		search->low = middle + 1;
	else
		return search->found = 1;
	return 0;
}

/* Whether the address that is looked for is before the one at `index`. */
static __always_inline int is_before(struct search *search, __u32 index)
{
	__u64 first_half = refused_word(index);

	return search->first_half < first_half ||
	       (search->first_half == first_half && search->second_half < refused_word(index + 1));
}

static __always_inline int is_behind(struct search *search, __u32 index)
{
	__u64 first_half = refused_word(index);

	return search->first_half > first_half ||
	       (search->first_half == first_half && search->second_half > refused_word(index + 1));
}

/* One halving of IPv6's. */
static long halve6(__u32 step, struct search *search)
{
	__u32 middle = search->low + (search->high - search->low) / 2;
	__u32 range = search->base + middle * RANGE6_WORDS;

	(void)step;
	if (search->low >= search->high)
		return 1;
	if (is_before(search, range))
		search->high = middle;
	else if (is_behind(search, range + 2))
		search->low = middle + 1;
	else
		return search->found = 1;
	return 0;
}

/* What a search begins with, of all ranges in force of one IP. */
static __always_inline struct search among(struct settings *set, __u64 word, int six)
{
	__u32 bank = word >> REFUSED_BANK_SHIFT & 1;
	__u64 counts = *(volatile __u64 *)&set->refused[bank];

	return (struct search){
		.base = bank * REFUSED_BANK_WORDS + (six ? REFUSED : 0),
		.high = six ? counts >> 32 : (__u32)counts,
	};
}

static __always_inline int is_refused(struct settings *set, __u64 word, struct ipv4 *ip)
{
	struct search search = among(set, word, 0);

	if (!search.high)
		return 0;
	search.second_half = bpf_ntohl(ip->source);
	bpf_loop(REFUSED_STEPS, halve4, &search, 0);
	return search.found;
}

static __always_inline int is_refused6(struct settings *set, __u64 word, struct ipv6 *ip)
{
	struct search search = among(set, word, 1);

	if (!search.high)
		return 0;
	search.first_half = bpf_be64_to_cpu(ip->source[0]);
	search.second_half = bpf_be64_to_cpu(ip->source[1]);
	bpf_loop(REFUSED_STEPS, halve6, &search, 0);
	return search.found;
}
