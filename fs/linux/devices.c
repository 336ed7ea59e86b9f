/*
 * The devices of memory that only Linux's programs look for: /dev/full, whose writes fail with
 * -ENOSPC, and /dev/random and /dev/urandom (full(4), random(4)).
 *
 * The setting `seed`, or 0, decides all random bits. So a run can be repeated to the bit, and
 * nothing here is fit for keys. The same bits are what getrandom(2) gives, and a program's
 * AT_RANDOM.
 */
#include "fs/linux/devices.h"

#include "drivers/qemu/settings.h"
#include "fs/devices.h"
#include "kernel/lib/random.h"
#include "kernel/lib/startup.h"

static struct random random;

static int write_full(struct file *file, struct buffer *from, uint64_t offset)
{
	return -ENOSPC;
}

/* SplitMix64: good for experiments that can be repeated, not for keys. */
uint64_t device_random(void)
{
	return random_next(&random);
}

/* In pieces of 8 bytes: a copy to a program may sleep between them, and other tasks take bits. */
int device_fill_random(struct buffer *to)
{
	int done = 0;

	while (to->length > 0) {
		uint64_t bits = device_random();
		int moved = buffer_put(to, &bits, sizeof(bits));

		if (moved < 0)
			return done ? done : moved;
		done += moved;
	}
	return done;
}

static int read_random(struct file *file, struct buffer *to, uint64_t offset)
{
	return device_fill_random(to);
}

static const struct file_ops full_ops = { .read = device_read_zeros, .write = write_full };
static const struct file_ops random_ops = { .read = read_random, .write = device_write_away };

static void devices_start(void)
{
	static struct device table[] = {
		{ "full", DEVICE_OF_MEMORY(7), 0666, &full_ops, NULL },
		{ "random", DEVICE_OF_MEMORY(8), 0666, &random_ops, NULL },
		{ "urandom", DEVICE_OF_MEMORY(9), 0666, &random_ops, NULL },
	};

	random.state = setting_number("seed", 0);
	for (uint32_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		device_register(&table[i]);
}
STARTUP(devices_start)
