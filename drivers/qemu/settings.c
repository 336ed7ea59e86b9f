/* Settings that the host gives for a run. */
#include "drivers/qemu/settings.h"

#include "drivers/qemu/fw_cfg.h"
#include "kernel/report/boot_info.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/number.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"

int setting_read(const char *name, char *buffer, uint32_t size)
{
	char path[56];

	snprintk(path, sizeof(path), "opt/org.apprentice/%s", name);
	int length = fw_cfg_read(path, buffer, size);

	if (length >= 0)
		return length;
	return boot_option(name, buffer, size) ? (int)strlen(buffer) : -ENOENT;
}

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
