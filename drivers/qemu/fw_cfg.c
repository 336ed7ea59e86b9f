/* QEMU's firmware configuration device: docs/specs/fw_cfg in QEMU's source, the port interface. */
#include "drivers/qemu/fw_cfg.h"

#include <stdbool.h>

#include "kernel/lib/errno.h"
#include "kernel/cpu/io.h"
#include "kernel/lib/string.h"

#define SELECTOR       0x510 /* 16 bits */
#define DATA	       0x511 /* 8 bits, the next byte of the selected item */
#define ITEM_SIGNATURE 0x0000
#define ITEM_DIRECTORY 0x0019
#define FILES_AT_MOST  256u

/* An entry of the directory; numbers are big-endian. */
struct file {
	uint8_t size[4];
	uint8_t select[2];
	uint8_t reserved[2];
	char name[56];
};

static uint32_t big_endian(const uint8_t *bytes, unsigned count)
{
	uint32_t value = 0;

	while (count--)
		value = value << 8 | *bytes++;
	return value;
}

static bool is_present(void)
{
	char signature[4];

	out16(SELECTOR, ITEM_SIGNATURE);
	in8_repeat(DATA, signature, sizeof(signature));
	return memcmp(signature, "QEMU", sizeof(signature)) == 0;
}

/* Finds the directory entry of this name. */
static bool find(const char *name, struct file *file)
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

int fw_cfg_open(const char *name)
{
	struct file file;

	if (!is_present())
		return -ENODEV;
	if (!find(name, &file))
		return -ENOENT;
	out16(SELECTOR, big_endian(file.select, 2));
	return big_endian(file.size, 4);
}

void fw_cfg_next(void *buffer, uint32_t length)
{
	in8_repeat(DATA, buffer, length);
}

int fw_cfg_read(const char *name, char *buffer, uint32_t size)
{
	int length = fw_cfg_open(name);

	if (length < 0)
		return length;
	uint32_t copied = (uint32_t)length < size ? (uint32_t)length : size - 1;

	fw_cfg_next(buffer, copied);
	buffer[copied] = '\0';
	return length;
}
