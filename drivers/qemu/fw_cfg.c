/*
 * QEMU's firmware configuration device (docs/specs/fw_cfg in QEMU's source, the port interface).
 *
 * A channel from the host's command line into the guest: -fw_cfg
 * name=opt/org.apprentice/seed,string=7 becomes a file here. The device is a list of items, and one
 * read position. Writing an item's number to one port selects it and goes to its beginning; each
 * read of the other port gives the next byte:
 *
 *	select 0x0019	count, then 64 bytes a file	size, number to select, name; big-endian
 *	select 0x0022	the file's own bytes
 *
 * A byte from a port takes QEMU as long as a hundred instructions. So long pieces are copied by the
 * device itself: a third port takes the address of what is to be copied where.
 *
 * Selecting moves the one position, so a file that is open must be read before another is. Nothing
 * here sleeps or is safe against interrupts: for boot, and for the commands of the monitor.
 */
#include "drivers/qemu/fw_cfg.h"

#include "kernel/lib/errno.h"
#include "kernel/cpu/io.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/lib/string.h"

#define SELECTOR       0x510 /* 16 bits */
#define DATA	       0x511 /* 8 bits, the next byte of the selected item */
#define START	       0x518 /* the lower half of the address of a struct copying, big-endian */
#define READ	       2u
#define ITEM_DIRECTORY 0x0019
#define FILES_AT_MOST  256u
#define LONG	       64u /* bytes */

/* An entry of the directory; numbers are big-endian. */
struct file {
	uint8_t size[4];
	uint8_t select[2];
	uint8_t reserved[2];
	char name[56];
};

/* What the device copies; big-endian. It sets control to 0 before the instruction that starts it
 * ends. */
struct copying {
	uint32_t control, length, address_high, address;
};

/* The bytes' order does not depend on the processor's, so no swap is needed. */
static uint32_t big_endian(const uint8_t *bytes, unsigned count)
{
	uint32_t value = 0;

	while (count--)
		value = value << 8 | *bytes++;
	return value;
}

/* Finds the directory entry of this name. On a real PC nothing decodes the ports, and reads give
 * all ones: that looks like the largest number of files, none of which has the name. */
static bool find_file(const char *name, struct file *file)
{
	uint8_t bytes[4];

	out16(SELECTOR, ITEM_DIRECTORY);
	in8_repeat(DATA, bytes, sizeof(bytes));
	uint32_t count = big_endian(bytes, 4);

	for (uint32_t i = 0; i < count && i < FILES_AT_MOST; i++) {
		in8_repeat(DATA, file, sizeof(*file));
		if (strncmp(file->name, name, sizeof(file->name)) == 0)
			return true;
	}
	return false;
}

/* The directory was read from its beginning: selecting the file also forgets where that was. */
int fw_cfg_open(const char *name)
{
	struct file file;

	if (!find_file(name, &file))
		return -ENOENT;
	out16(SELECTOR, big_endian(file.select, 2));
	return big_endian(file.size, 4);
}

/* For files that are larger than free memory: the initramfs is unpacked as it is read. What is not
 * in the direct map, a task's stack, comes by the port, and all of it from an older device. */
void fw_cfg_next(void *buffer, uint32_t length)
{
	static volatile struct copying copying;

	copying = (struct copying){ .control = __builtin_bswap32(READ),
				    .length = __builtin_bswap32(length),
				    .address = __builtin_bswap32(physical_address(buffer)) };
	if (length >= LONG && (uintptr_t)buffer - KERNEL_BASE < DIRECT_MAP_SIZE)
		out32(START, __builtin_bswap32(physical_address((const void *)&copying)));
	if (copying.control != 0)
		in8_repeat(DATA, buffer, length);
}
