/*
 * The root on a disk: the host's setting "root" names a device ("/dev/hdb"), and "rootflags"
 * mount's options ("ro", "data=journal"). Mounting sleeps, so it is the first task's first work.
 * Without the setting the root stays in memory.
 *
 * Before it, the setting "snapshot" ("hdb hdc") makes a snapshot, or goes on with one: nobody has
 * written to its origin then.
 */
#include "drivers/qemu/settings.h"
#include "fs/disk/snapshots.h"
#include "fs/vfs/mounting.h"
#include "kernel/cpu/machine.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"
#include "labs/lesson4/first_task.h"

/* The machine ends if the error is one: programs would find other files than those asked for. */
static void check_setting(const char *what, const char *name, int error)
{
	if (!error)
		return;
	printk("%s: %s cannot be used: %s\n", what, name, errno_name(-error));
	machine_exit(EXIT_FAILURE);
}

static void mount_root(void)
{
	char device[32], flags[64] = "";
	struct mount_options options = { 0 };

	if (setting_read("root", device, sizeof(device)) < 0)
		return;
	setting_read("rootflags", flags, sizeof(flags));
	options.read_only = strcmp(flags, "ro") == 0;
	options.text = options.read_only ? "" : flags;
	check_setting("root", device, vfs_change_root(device, "ext4", &options));
	printk("root: %s\n", device);
}

void first_task_prepare(void)
{
	char line[64];

	if (setting_read("snapshot", line, sizeof(line)) >= 0)
		check_setting("snapshot", line, snapshots_do(line));
	mount_root();
}
