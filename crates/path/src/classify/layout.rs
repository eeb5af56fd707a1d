//! The layout of the classifier's tables, word for word, and the hash (Scout §3.4).
//! The XDP program implements the same words in C and a property test demands the same
//! answers, so nothing here may change without changing `layout.h` and `tables.h` of the device's `bpf` in the
//! same commit.
//!
//! **Byte order.** Addresses and ports are kept *as they stand on the wire*, loaded
//! little-endian: address 10.0.0.1 is the `u32` `0x0100_000a`, port 80 the `u16` `0x5000`.
//! An XDP program on a little-endian machine therefore loads them from the packet unchanged.
//! Only the index of the ports table is the port's number in host order.
//!
//! # Flow table: `flows`, an array of `u64`, 2 per entry, 4 entries per bucket of 64 bytes
//! ```text
//!          63            48 47            32 31                             0
//! word 0  |   local port   |  remote port   |         remote address         |   KEY
//! word 1  |              value              |         local address          |   STATE
//!
//! value    31      30      29         24 23                                0
//!         | valid |  udp  |    domain    |             path index            |
//! ```
//! * The number of buckets is a power of two, at least 4: `mask = buckets - 1`. Bucket `b` is
//!   the words `8*b .. 8*b+8`, aligned to 64 bytes, entry `e` of it the words `8*b + 2*e` and
//!   `8*b + 2*e + 1`.
//! * A free entry has word 1 equal to zero. An entry whose value has no valid bit is being
//!   written ([`CLAIMED`]): readers skip it.
//! * The key of a packet is `word 0` and `want = local address | UDP<<32` (the UDP bit at
//!   [`VALUE_UDP`]`<<32`); an entry matches when `word 0` is equal and
//!   `word 1 & `[`MATCH_MASK`] `== want | VALUE_VALID<<32`.
//! * Buckets probed, in this order, every one of them on a miss (removal leaves holes):
//!   `b1 = (u32)h & mask`, `b1 ^ 1`, `b2 = (h >> 32) & mask`, `b2 ^ 1`, where
//!   `h = hash(seed, word 0, want)`. `b` and `b ^ 1` share a 128-byte line pair.
//! * **A flow over IPv6** is known by a keyed fingerprint of 96 bits in place of its addresses and
//!   ports: `word 0` and the lower half of `want` are the two outputs of SipHash-1-3-128
//!   (`fingerprint.rs`) over five words, the *wire bytes loaded little-endian*: remote address
//!   (two), local address (two), `remote port | local port << 16`. Its key is settings words 1
//!   and 10. The rest is the same for both families.
//! * Reader: load word 1; if it matches, load word 0 *after* it; if that is equal, load word 1
//!   again; when it is unchanged the value belongs to the key, otherwise treat the entry as not
//!   matching. (A stage checks the addresses again: a torn answer costs a packet, no more.)
//! * Writer: compare-and-swap word 1 from 0 to [`CLAIMED`], store word 0, store word 1 with the
//!   valid bit. Removal stores 0 to word 1. A change of value is one store of word 1.
//! * [`INDEX_LISTEN`] as the index means: owned by silk, but handled by the domain's listen
//!   path (TIME-WAIT keeps its entry this way after its path is gone).
//!
//! # Homes: `homes`, a byte for each bucket, the first one's lowest in its `u64`
//! A flow's home is `b1`, whichever bucket it stands in. Byte `b` counts the flows whose home is `b`; one that
//! has reached [`HOME_FULL`] stays so.
//! * Reader: a flow whose home has a count of 0 is not in the table; no bucket is looked at.
//! * Writer: adds one before the entry becomes valid, and takes one away after word 1 was 0 again, by
//!   compare-and-swap of the word.
//!
//! # Ports table: `ports`, 65536 `u32`, indexed by the local port's number
//! ```text
//!  31                         16 15                          0
//! |  UDP, bit 16+i: address i   |  TCP, bit i: local address i |
//! ```
//! Bit *i* set: silk owns the port on the *i*-th local IPv4 address of the settings; bit 15 - *i*:
//! on the *i*-th local IPv6 address. There are at most 16 addresses in all.
//!
//! # Rules table: `rules`, 2 banks of [`RULES`] entries of [`RULE_WORDS`] `u64`; the first match wins
//! ```text
//!          63   42 41 40 39 32 31     24 23     16 15                         0
//! word 0  |            mask          |             source prefix            |   (32 bits each)
//! word 1  |    0  | families | any | domain  |  dscp   |     local port     |
//! word 2  |             first half of the IPv6 source prefix                |
//! word 3  |             second half                                         |
//! word 4  |             first half of its mask                              |
//! word 5  |             second half                                         |
//! ```
//! Prefixes and masks are wire bytes loaded little-endian; a rule matches when it is of the
//! packet's family (bit 33, [`RULE_NOT_V4`], and bit 34, [`RULE_NOT_V6`], are clear), and
//! `(source & mask) == prefix`, and `local port` is 0 or the packet's (wire bytes loaded
//! little-endian), and bit 32 ([`RULE_ANY_DSCP`]) is set or `dscp` is the packet's
//! (service bits or traffic class `>> 2`). A rule of bank *k* is at words
//! `RULE_WORDS*(k*RULES + i)`. No match: the default domain.
//!
//! # Who is refused: `refused`, 2 banks of [`REFUSED_BANK_WORDS`] `u64`
//! ```text
//!          63                            32 31                             0
//! word i      |      last address          |       first address            |   range i of IPv4, i < REFUSED
//! word R+4*i  | first half of the first address                             |   range i of IPv6, R = REFUSED
//!        +1   | second half                                                 |
//!        +2   | first half of the last address                              |
//!        +3   | second half                                                 |
//! ```
//! Here addresses are *numbers*, the most significant byte of the address the highest. The ranges of each IP rise and do not
//! overlap. A bank of number *k* is at words `REFUSED_BANK_WORDS*k`; how many ranges it has stands in word 28 + *k* of the
//! settings, and which is in force in bit [`REFUSED_BANK_SHIFT`] of their word 0. An address is refused when a range in force
//! holds it.
//!
//! # Settings: `settings`, [`SETTINGS_WORDS`] `u64`
//! ```text
//!           63    56 55     48 47    40 39  32 31      24 23       16 15        8 7     0
//! word 0    |  IPv6  |  IPv4  | rules  | bank | control  | fragment  | default   | flags |
//! word 1    | hash seed, first half of the fingerprints' key                              |
//! word 2+k  | local IPv4 address 2k+1       | local IPv4 address 2k                       |
//! word 10   | second half of the fingerprints' key                                        |
//! word 11+2k| first half of local IPv6 address k; word 12+2k: the second                  |
//! word 27   | 16 bits for each device, the first's lowest: the virtual LAN whose          |
//!           | frames are ours over it, 1 to 4094; 0: untagged frames are                  |
//! word 28+k | ranges of IPv6 that bank k of who is refused has | of IPv4 (32 bits each)   |
//! ```
//! `bank`: bit 0 is that of the rules, bit 1 of who is refused.
//! `IPv4` and `IPv6` are the numbers of local addresses. Behind them, as far as the words go, stand the
//! groups that are heard: of IPv4 and, in words 11 on, of IPv6; 0 where there is none. Address or group
//! *k* of IPv4 has bit *k* of a port's half, of IPv6 bit 15 - *k*.
//! `flags`: [`OWN_ARP`] (neighbour discovery, IGMP and MLD too), [`OWN_ICMP`], [`OWN_FRAGMENTS`]. `default`, `fragment` and `control`
//! are domains. One store of word 0 switches the rules' bank, counts and domains at once: a reload is
//! all or nothing. Who is refused is switched by another.
//!
//! # The specification both sides evaluate, on an Ethernet frame of `len` bytes
//! 1. `len < 14`: pass. With a tag of IEEE 802.1Q (0x8100; `len < 18`: pass) its lower twelve bits are
//!    the frame's VID, the kind follows the tag, and all that follows is meant as if the tag were not there
//!    (a second tag is a kind like others). Without one the VID is 0. If it is not that of the device in
//!    settings word 27: pass.
//!    ARP (0x0806): control if OWN_ARP, else pass. IPv6 (0x86dd): step 7. Not IPv4 (0x0800): pass.
//! 2. IPv4: `len >= 34`, version 4, `ihl*4 >= 20`, `ihl*4 <= total length`,
//!    `14 + total length <= len`; else pass. Options are skipped. `l4 = 14 + ihl*4`,
//!    `room = total length - ihl*4`.
//!    IGMP (2) with `room >= 8` that is no fragment: control if OWN_ARP, else pass, whatever its destination.
//!    A group destination (bit 0 of the frame's first byte): UDP with `room >= 8` that is no fragment, to
//!    group *i* whose bit the ports table has: listen or refuse, as in 4; else pass.
//! 3. A fragment (more-fragments or offset not 0): if OWN_FRAGMENTS and the destination is one
//!    of the local addresses, fragment; else pass.
//! 4. TCP (6) with `room >= 20`, UDP (17) with `room >= 8`; (less room: pass). Flow found:
//!    path (or listen, with the flow's domain, when the index is INDEX_LISTEN). Else, if the
//!    destination is local address *i* and the ports table has its bit for the protocol:
//!    listen, in the domain of the first matching rule, or refuse, if the source is refused. Else pass.
//! 5. ICMP (1) with `room >= 8` to a local address. Types 3, 11 and 12 quote a packet of ours
//!    at `q = l4 + 8`: if `room >= 8 + 20`, its version is 4, `qhl = ihl*4 >= 20`,
//!    `room >= 8 + qhl + 8`, its fragment offset is 0 and its protocol is TCP or UDP, look up
//!    the flow with local = quoted source, remote = quoted destination; found: control, in the
//!    flow's domain. Not found, UDP, and the quoted source is local address *i* whose bit the ports
//!    table has for the quoted source port: control in the control domain.
//!    In all other cases: control in the control domain if OWN_ICMP, else pass.
//! 6. Anything else: pass.
//! 7. IPv6: `len >= 54`, version 6, `54 + payload length <= len`; else pass. `at = 54`, `end = 54 +
//!    payload length`; extension headers are skipped: hop-by-hop (0), routing (43) and destination
//!    options (60), `(second byte + 1) * 8` bytes each, and a fragment header (44, 8 bytes) without
//!    offset and more-fragments. At most [`EXTENSIONS`] headers of together at most
//!    [`EXTENSION_BYTES`] bytes, none beyond `end`; else pass. `room = end - at`.
//! 8. Neighbour discovery and MLD (58 behind at most these headers, `room >= 8`, type 130 to 137): control if
//!    OWN_ARP, else pass, whatever its destination. An echo request (58 likewise, type 128) with a group
//!    destination to all nodes (`ff02::1`): control in the control domain if OWN_ICMP, else pass. Any other packet
//!    with a group destination: as in 2, with the groups of IPv6.
//! 9. A fragment header with an offset or more-fragments: as in 3, with the local IPv6 addresses.
//!    TCP and UDP: as in 4, with these and the fingerprint.
//! 10. ICMPv6 (58) with `room >= 8` to a local IPv6 address. Types 1 to 4 quote a packet of ours at
//!     `q = at + 8`: if `room >= 8 + 48`, its version is 6 and its next header TCP or UDP, or a fragment
//!     header (44) with offset 0 and these behind it (`room >= 8 + 56`), look up the flow with local =
//!     quoted source, remote = quoted destination; found: control, in the flow's domain. Not found: as in 5.
//!     In all other cases: control in the control domain if OWN_ICMP, else pass.
//!     Anything else: pass.
//!
//! 11. Early discard, of a UDP packet whose flow was found in 4 or 9 with an index that is not
//!     INDEX_LISTEN, and which is one datagram, not several that came as one. `entry = discards[index & 255]`, `room` of UDP's header on. The packet is
//!     discarded when the entry's `value` is the flow's, `room >= 8 + `[`DISCARD_BYTES`], its
//!     payload `p` is of the entry's protocol, nothing asks for it, and it is not wanted:
//!     * MFLOW: `p[0]` is [`MFLOW_DATA`]; asked for if `p[1] & `[`MFLOW_NEEDED`]` != 0` (an
//!       advertisement is wanted, or the stream ends); `type = p[2]`, `stamp` the `u32` at `p[8]`.
//!     * RTP with the header of RFC 2250: `p[0] & `[`RTP_MASK`]` == `[`RTP_PLAIN`] (version 2, no
//!       extension, no CSRC); `type = p[14] & 7`, `stamp` the `u32` at `p[4]`.
//!     * Not wanted: `type < 8` and bit `type` of `types` is set; or MFLOW, `type < 8`, bit `type` of
//!       `skips` is set, `every > 1` and `stamp % every != 0`; or `type` is [`KIND_B`], bit 32 of word 1 is set and
//!       `stamp - least`, of 32 bits with a sign, is negative.
//!
//!     Whoever drops it adds one to word 2.
//!
//! The answer of `steer`, which only chooses among queues, depends neither on this nor on who is refused.
//!
//! # Discards: `discards`, [`DISCARDS`] entries of [`DISCARD_WORDS`] `u64`
//! ```text
//!          63            48 47     40 39      32 31                             0
//! word 0  |     every      |  types  | protocol |             value              |
//! word 1  |       0        |  skips  |   0   ^ |             least              |
//! word 2  | packets discarded                                                    |
//! word 3  | 0                                                                    |
//! ```
//! `value` is that of the flow, 0 in a free entry; `protocol` is [`DISCARD_MFLOW`],
//! [`DISCARD_RTP`], or 0 while a writer is at work; `^`, bit 32: `least` is in force.
//! * Reader: load word 0; if its value is the flow's, load word 1 after it, then word 0 again;
//!   when that has changed, deliver the packet.
//! * Writer: compare-and-swap word 0 from 0 to `value` without protocol (or store that, when the
//!   entry is the path's already), store word 1, store word 0. Word 1 alone may change by one
//!   store. Removal stores 0 to word 0. Word 2 is added to atomically, by user space and by the
//!   XDP program on any CPU, so it needs no copy for each.
//!
//! # The metadata word the XDP program writes (a `u32` right before the frame)
//! Path: the flow's value. Else no valid bit, the domain in bits 24 to 29, and in the low byte
//! [`HINT_LISTEN`], [`HINT_FRAGMENT`] or [`HINT_CONTROL`]. Zero: no hint, classify again.

/// Words (`u64`) of one flow entry.
pub const ENTRY_WORDS: usize = 2;
/// Entries of one bucket, which is one 64-byte cache line.
pub const BUCKET_ENTRIES: usize = 4;
/// Words (`u64`) of one bucket.
pub const BUCKET_WORDS: usize = ENTRY_WORDS * BUCKET_ENTRIES;
/// The fewest buckets of a table.
pub const MIN_BUCKETS: usize = 4;
/// Buckets whose flows are counted in one word (`u64`) of the homes.
pub const HOMES_PER_WORD: usize = 8;
/// The highest count of a home, and the bits of one.
pub const HOME_FULL: u64 = 0xff;

/// In a value: the entry is complete.
pub const VALUE_VALID: u32 = 1 << 31;
/// In a value: UDP; clear for TCP.
pub const VALUE_UDP: u32 = 1 << 30;
/// Where the domain starts in a value.
pub const DOMAIN_SHIFT: u32 = 24;
/// The domain, once shifted down: at most 64 domains.
pub const DOMAIN_MASK: u32 = 0x3f;
/// The path index in a value.
pub const INDEX_MASK: u32 = 0x00ff_ffff;
/// The index of a flow that its domain's listen path handles (a TIME-WAIT flow).
pub const INDEX_LISTEN: u32 = INDEX_MASK;
/// Word 1 of an entry that a writer holds and has not filled yet. Not valid, not free.
pub const CLAIMED: u64 = 1 << 32;
/// The bits of word 1 that take part in matching: valid, udp and the local address.
pub const MATCH_MASK: u64 = (((VALUE_VALID | VALUE_UDP) as u64) << 32) | 0xffff_ffff;

/// Words (`u32`) of the ports table.
pub const PORTS: usize = 65536;
/// The shift of the UDP half of a ports word.
pub const PORT_UDP_SHIFT: u32 = 16;

/// Rules in one bank.
pub const RULES: usize = 64;
/// Words (`u64`) of the rules table.
pub const RULES_WORDS: usize = 2 * RULES * RULE_WORDS;
/// In word 1 of a rule: any DSCP matches.
pub const RULE_ANY_DSCP: u64 = 1 << 32;
/// In word 1 of a rule: packets of IPv4 do not match.
pub const RULE_NOT_V4: u64 = 1 << 33;
/// In word 1 of a rule: packets of IPv6 do not match.
pub const RULE_NOT_V6: u64 = 1 << 34;
/// Words (`u64`) of one rule.
pub const RULE_WORDS: usize = 6;

/// Ranges of each IP in one bank of who is refused.
pub const REFUSED: usize = 16_384;
/// Words (`u64`) of a range of IPv6.
pub const RANGE6_WORDS: usize = 4;
/// Words (`u64`) of one bank of who is refused.
pub const REFUSED_BANK_WORDS: usize = REFUSED * (1 + RANGE6_WORDS);
/// Words (`u64`) of the table of who is refused.
pub const REFUSED_WORDS: usize = 2 * REFUSED_BANK_WORDS;

/// Local addresses the settings can hold, of both families together.
pub const ADDRESSES: usize = 16;
/// Of these, local IPv6 addresses.
pub const ADDRESSES6: usize = 8;
/// Words (`u64`) of the settings.
pub const SETTINGS_WORDS: usize = SETTINGS_REFUSED + 2;
/// The word of the settings that holds the virtual LANs.
pub const SETTINGS_VLAN: usize = SETTINGS_ADDRESSES6 + 2 * ADDRESSES6;
/// The first of the two words of the settings that hold how many ranges are refused.
pub const SETTINGS_REFUSED: usize = SETTINGS_VLAN + 1;
/// The most devices that the tables can be about.
pub const DEVICES: usize = 4;

/// The virtual LANs of all devices in [`SETTINGS_VLAN`]: the first one's in the lowest 16 bits.
pub fn vlans_word(vlans: [u16; DEVICES]) -> u64 {
    vlans.iter().rev().fold(0, |word, vlan| word << 16 | u64::from(*vlan))
}

/// The virtual LANs that are in that word.
pub fn vlans_of(word: u64) -> [u16; DEVICES] {
    core::array::from_fn(|device| (word >> (16 * device)) as u16)
}
/// The word of the settings that holds the second half of the fingerprints' key.
pub const SETTINGS_SEED2: usize = SETTINGS_ADDRESSES + ADDRESSES / 2;
/// The first word of the settings that holds IPv6 addresses.
pub const SETTINGS_ADDRESSES6: usize = SETTINGS_SEED2 + 1;
/// The most extension headers that are skipped.
pub const EXTENSIONS: usize = 4;
/// The most bytes of them.
pub const EXTENSION_BYTES: usize = 128;
/// The word of the settings that holds the hash seed.
pub const SETTINGS_SEED: usize = 1;
/// The first word of the settings that holds addresses.
pub const SETTINGS_ADDRESSES: usize = 2;
/// Settings flag: ARP and neighbour discovery go to the control domain.
pub const OWN_ARP: u64 = 1;
/// Settings flag: ICMP to a local address goes to the control domain.
pub const OWN_ICMP: u64 = 2;
/// Settings flag: every IP fragment to a local address goes to the fragment domain.
pub const OWN_FRAGMENTS: u64 = 4;
/// Where word 0 of the settings keeps the default domain (8 bits).
pub const DEFAULT_SHIFT: u32 = 8;
/// Where word 0 of the settings keeps the fragment domain (8 bits).
pub const FRAGMENT_SHIFT: u32 = 16;
/// Where word 0 of the settings keeps the control domain (8 bits).
pub const CONTROL_SHIFT: u32 = 24;
/// Where word 0 of the settings keeps the bank of rules in force (a bit).
pub const BANK_SHIFT: u32 = 32;
/// Where word 0 of the settings keeps the bank of who is refused (a bit).
pub const REFUSED_BANK_SHIFT: u32 = 33;
/// Where word 0 of the settings keeps the number of rules in that bank (8 bits).
pub const RULE_COUNT_SHIFT: u32 = 40;
/// Where word 0 of the settings keeps the number of local IPv4 addresses (8 bits).
pub const ADDRESS_COUNT_SHIFT: u32 = 48;
/// Where word 0 of the settings keeps the number of local IPv6 addresses (8 bits).
pub const ADDRESS6_COUNT_SHIFT: u32 = 56;

/// Metadata: for the listen path of the domain.
pub const HINT_LISTEN: u32 = 1;
/// Metadata: a fragment, for the domain's path that leads up to IP.
pub const HINT_FRAGMENT: u32 = 2;
/// Metadata: ARP or ICMP, for the domain's control path.
pub const HINT_CONTROL: u32 = 3;

/// In the XDP program only, never written: the packet is discarded.
pub const HINT_DISCARD: u32 = 4;
/// The same: its sender is refused. (5 is beyond a domain's limit, `limits.h`.)
pub const HINT_REFUSED: u32 = 6;

/// Entries of the discards table.
pub const DISCARDS: usize = 256;
/// Words (`u64`) of one entry of it.
pub const DISCARD_WORDS: usize = 4;
/// Words (`u64`) of the discards table.
pub const DISCARDS_WORDS: usize = DISCARDS * DISCARD_WORDS;
/// Where word 0 of an entry keeps the protocol (8 bits).
pub const DISCARD_FRAMED_SHIFT: u32 = 32;
/// Where word 0 of an entry keeps the mask of types (8 bits).
pub const DISCARD_TYPES_SHIFT: u32 = 40;
/// Where word 0 of an entry keeps which pictures are wanted (16 bits).
pub const DISCARD_EVERY_SHIFT: u32 = 48;
/// Where word 1 of an entry keeps the mask of types of which pictures are skipped (8 bits).
pub const DISCARD_SKIPS_SHIFT: u32 = 40;
/// In word 1 of an entry: the lower half is in force.
pub const DISCARD_HAS_LEAST: u64 = 1 << 32;
/// The protocol of an entry: MFLOW.
pub const DISCARD_MFLOW: u64 = 1;
/// The protocol of an entry: RTP with the header of RFC 2250.
pub const DISCARD_RTP: u64 = 2;
/// Bytes behind UDP's header that are looked at.
pub const DISCARD_BYTES: usize = 16;
/// The first byte of MFLOW's data: version 1, kind 0.
pub const MFLOW_DATA: u8 = 0x10;
/// The flags of MFLOW's data that ask for an advertisement or end the stream.
pub const MFLOW_NEEDED: u8 = 4 | 8;
/// The bits of RTP's first byte that are looked at: all but padding.
pub const RTP_MASK: u8 = 0xdf;
/// RTP's first byte, so masked: version 2, no extension, no CSRC.
pub const RTP_PLAIN: u8 = 0x80;
/// The type of a B picture (ISO 13818-2 §6.3.9).
pub const KIND_B: u8 = 3;

/// First multiplier of the hash.
pub const HASH_K1: u64 = 0x9e37_79b9_7f4a_7c15;
/// Second multiplier of the hash.
pub const HASH_K2: u64 = 0xd6e8_feb8_6659_fd93;

/// The hash of a key: `word 0`, and `want` (local address and UDP bit), keyed by the seed.
/// 64-bit wrapping arithmetic only, so that BPF C writes the same five lines.
pub const fn hash(seed: u64, key: u64, want: u64) -> u64 {
    let mut h = (key ^ seed).wrapping_mul(HASH_K1);
    h ^= h >> 32;
    h ^= want;
    h = h.wrapping_mul(HASH_K2);
    h ^ (h >> 32)
}

/// The bucket that a key is counted in: the first of the four.
pub const fn home(hash: u64, mask: u64) -> usize {
    buckets(hash, mask)[0]
}

/// The four buckets a key may be in, in probing order.
pub const fn buckets(hash: u64, mask: u64) -> [usize; 4] {
    let first = (hash as u32) as u64 & mask;
    let second = (hash >> 32) & mask;
    [first as usize, (first ^ 1) as usize, second as usize, (second ^ 1) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_written_down() {
        assert_eq!(hash(0, 0, 0), 0);
        // Golden values, so that a change here cannot pass unnoticed by the C program.
        assert_eq!(hash(1, 0x5000_1234_0100_000a, 0x0200_000a), GOLDEN[0]);
        assert_eq!(hash(0xdead_beef, 0x5000_1234_0100_000a, 0x4000_0000_0200_000a), GOLDEN[1]);
    }

    const GOLDEN: [u64; 2] = [0xa0c5_6dcb_7cc1_3b04, 0x2e61_f6f8_e301_7939];

    #[test]
    fn a_bucket_and_its_partner_share_a_line_pair() {
        let [a, b, c, d] = buckets(0x1234_5678_9abc_def1, 0xff);
        assert_eq!((a / 2, c / 2), (b / 2, d / 2));
        assert_eq!((a, c), (0xf1, 0x78));
    }
}
