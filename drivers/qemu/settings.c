/*
 * Settings that the host gives for a run: the seed, a script, how a test wants the machine.
 *
 * Two sources, in this order. QEMU's device is first because it takes any length and any character;
 * a command line works on real hardware, too, and from GRUB's menu. After boot_info_read; no memory
 * is allocated.
 */
#include "drivers/qemu/settings.h"

#include "drivers/qemu/fw_cfg.h"
#include "kernel/report/boot_info.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/number.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"

/* Reads the device each time: settings are read a few times at boot, and never change. */
int setting_read(const char *name, char *buffer, uint32_t size)
{
	char path[56];

	snprintk(path, sizeof(path), "opt/org.apprentice/%s", name);
	int length = fw_cfg_read(path, buffer, size);

	if (length >= 0)
		return length;
	return boot_option(name, buffer, size) ? (int)strlen(buffer) : -ENOENT;
}

/* A value that is not a number is said aloud: a run with a silently wrong seed is worse than none.
 */
uint64_t setting_number(const char *name, uint64_t otherwise)
{
	char text[24];
	uint64_t value;

	if (setting_read(name, text, sizeof(text)) < 0)
		return otherwise;
	if (!number_parse(text, &value)) {
		printk("%s=%s is no number; %llu is used\n", name, text, otherwise);
		return otherwise;
	}
	return value;
}
