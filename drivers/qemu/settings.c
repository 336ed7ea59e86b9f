/*
 * Settings that the host gives for a run: the seed, a script, and options of tests.
 *
 * QEMU's device takes any length and any character. Another machine has no such device, so each
 * setting has a default value. No memory is allocated.
 */
#include "drivers/qemu/settings.h"

#include "drivers/qemu/fw_cfg.h"
#include "kernel/lib/number.h"
#include "kernel/report/printk.h"

/* Reads the device each time: settings are read a few times at boot, and never change. */
int setting_read(const char *name, char *buffer, uint32_t size)
{
	char path[56];

	snprintk(path, sizeof(path), "opt/org.apprentice/%s", name);
	int length = fw_cfg_open(path);

	if (length < 0)
		return length;
	uint32_t copied = (uint32_t)length < size ? (uint32_t)length : size - 1;

	fw_cfg_next(buffer, copied);
	buffer[copied] = '\0';
	return length;
}

/* A value that is not a number is reported: a run with a silently wrong seed is worse than none.
 */
uint64_t setting_number(const char *name, uint64_t otherwise)
{
	char text[24];
	uint64_t value = otherwise;

	if (setting_read(name, text, sizeof(text)) >= 0 && !number_parse(text, &value)) {
		printk("%s=%s is not a number; %llu is used\n", name, text, otherwise);
		return otherwise;
	}
	return value;
}
