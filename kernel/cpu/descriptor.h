/* One segment descriptor, packed as the processor wants it: Intel SDM volume 3, 3.4.5. */
#pragma once

#include <stdint.h>

/* Flags, the three lower bits of the upper half of byte 6: available, 64-bit code (0x2, never set
 * in this kernel) and 32-bit. The fourth, granularity, is not among them: it follows from the
 * limit. */
#define DESCRIPTOR_AVAILABLE 0x1 /* for the system's own use */
#define DESCRIPTOR_32_BIT    0x4

struct descriptor {
	uint32_t base;
	uint32_t limit; /* the last offset that may be used, in bytes */
	uint8_t access; /* present, privilege, type: byte 5 */
	uint8_t flags;
};

/*
 * Packs a descriptor. A limit above 0xfffff cannot be counted in bytes: it is counted in pages of
 * 4 KiB, and so rounded up to the end of its page.
 */
uint64_t descriptor_pack(const struct descriptor *descriptor);

/* The inverse: what the processor understands. limit is in bytes whatever the granularity. */
struct descriptor descriptor_unpack(uint64_t packed);
