// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Which of the interfaces that it is attached to a packet came over.

/* The most interfaces it can be attached to. */
#define LINKS 4
/* How many they are, which, where the rings of each begin and how many it has. Set when it is loaded: with one, the kernel
 * leaves out all that tells them apart. */
const volatile __u32 links = 1;
const volatile __u32 interfaces[LINKS];
const volatile __u32 first_rings[LINKS];
const volatile __u32 rings[LINKS];

/* 1 where both are the same, else 0: without a branch, after each side of which the verifier would walk
 * through all that follows. */
static __always_inline __u32 same(__u32 a, __u32 b)
{
	__u64 less = (__u64)(a ^ b) - 1;

	/* Or the compiler finds out what it is. */
	asm volatile("" : "+r"(less));
	return less >> 63;
}

/* The place of the interface with this index among them; 0 for one that is none of them. */
static __always_inline __u32 link_of(__u32 interface)
{
	__u32 link = 0;

	if (links > 1) {
		/* There is no interface 0, which stands for those that are not there. */
		for (__u32 i = 1; i < LINKS; i++)
			link |= same(interface, interfaces[i]) * i;
	}
	return link & (LINKS - 1);
}
