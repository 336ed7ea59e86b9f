/*
 * One segment descriptor, packed into eight bytes and unpacked. Free of hardware: the host's tests
 * run it too.
 *
 * The 286 had 24 bits of base and 16 of limit. The 386 found room for the rest in the upper two
 * bytes, so both are split (Intel SDM volume 3, figure 3-8):
 *
 *	byte	7	6		5	4  3  2		1  0
 *		base	flags, limit	access	base		limit
 *		31-24	3-0	19-16		23-0		15-0
 *
 * The limit is the last offset that is valid, not a size. 20 bits of it are enough for 4 GiB
 * because the granularity flag counts pages: 0xfffff pages, and the last page's last byte, make
 * 0xffffffff.
 */
#include "kernel/cpu/descriptor.h"

/* EXERCISE 2.1 (segment descriptors): figure 3-8 of the Intel SDM, volume 3, drawn in
   labs/lesson2/README.md. Fields are split: the base lies in bits 16 to 39 and 56 to 63, the limit
   in bits 0 to 15 and 48 to 51.
   1. Pack: a limit above 0xfffff is counted in pages (divide by 4096) and needs the granularity
   bit, 55.
   2. Put the pieces together with shifts and masks; a shift beyond bit 31 needs a 64-bit operand.
   Of the flags only the three bits count that kernel/cpu/descriptor.h names: granularity is not the
   caller's.
   3. Unpack: the way back. With granularity the limit in bytes ends in twelve one bits. */
/* SOLUTION 2.1 { */
#define LARGEST_BYTE_LIMIT 0xfffffu
#define GRANULARITY	   (1ull << 55)

uint64_t descriptor_pack(const struct descriptor *descriptor)
{
	uint64_t base = descriptor->base, limit = descriptor->limit, granularity = 0;

	if (limit > LARGEST_BYTE_LIMIT) {
		limit >>= 12;
		granularity = GRANULARITY;
	}
	return (limit & 0xffff) | (base & 0xffffff) << 16 | (uint64_t)descriptor->access << 40 |
	       (limit >> 16) << 48 | (uint64_t)(descriptor->flags & 0x7) << 52 | granularity |
	       (base >> 24) << 56;
}

struct descriptor descriptor_unpack(uint64_t packed)
{
	uint32_t limit = (packed & 0xffff) | (packed >> 32 & 0xf0000);

	if (packed & GRANULARITY)
		limit = limit << 12 | 0xfff;
	return (struct descriptor){
		.base = (packed >> 16 & 0xffffff) | (packed >> 56 & 0xff) << 24,
		.limit = limit,
		.access = packed >> 40,
		.flags = packed >> 52 & 0x7,
	};
}
/* } SOLUTION 2.1 */
