/*
 * One segment descriptor, packed into eight bytes and unpacked. It uses no hardware, so tests
 * run it on the host, too.
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
   labs/lesson2/README.md. kernel/cpu/descriptor.h has the contract.
   descriptor_pack: a limit above 0xfffff is counted in pages, and then the granularity flag (bit
   55) is set. The three lower bits of `flags` are stored in bits 52 to 54: available, 64-bit code,
   32-bit. Its bit 3 is ignored, because granularity follows from the limit. `access` is stored as
   it is.
   descriptor_unpack: the inverse; limit is the last valid offset in bytes, `flags` is without
   granularity.
   Pitfalls: base and limit are split. A shift beyond bit 31 needs a 64-bit operand. A limit in
   pages includes the last page's last byte. */
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
