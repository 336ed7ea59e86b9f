/* /proc/sys: fixed settings, one value in each file, as sysctl(8) and C libraries read it. */
#include "fs/files.h"
#include "fs/proc/procfs.h"
#include "kernel/abi/capability.h"
#include "kernel/lib/startup.h"
#include "kernel/process/names.h"

struct procfs_entry procfs_sys_vm = { .name = "vm", .is_directory = true };

#define SHOWS(function, format, value)                                                             \
	static void function(struct procfs_text *text, const struct task *task)                    \
	{                                                                                          \
		procfs_print(text, format "\n", value);                                            \
	}

SHOWS(show_system, "%s", system_names.system)
SHOWS(show_release, "%s", system_names.release)
SHOWS(show_version, "%s", system_names.version)
SHOWS(show_host, "%s", system_names.node)
SHOWS(show_domain, "%s", system_names.domain)
SHOWS(show_pids, "%u", 4194304u) /* Linux's: ps makes its columns as wide */
SHOWS(show_groups, "%u", 65536u)
SHOWS(show_last_capability, "%d", CAP_LAST_CAP)
SHOWS(show_descriptors, "%u", FILES_MAX)
SHOWS(show_overcommit, "%u", 1u) /* memory is promised without being counted */

static void settings_register(void)
{
	static struct procfs_entry sys = { .name = "sys", .is_directory = true };
	static struct procfs_entry kernel = { .name = "kernel", .is_directory = true };
	static struct procfs_entry fs = { .name = "fs", .is_directory = true };
	static struct procfs_entry descriptors = { .name = "nr_open", .show = show_descriptors };
	static struct procfs_entry overcommit = { .name = "overcommit_memory",
						  .show = show_overcommit };
	static struct procfs_entry of_kernel[] = {
		{ .name = "cap_last_cap", .show = show_last_capability },
		{ .name = "domainname", .show = show_domain },
		{ .name = "hostname", .show = show_host },
		{ .name = "ngroups_max", .show = show_groups },
		{ .name = "osrelease", .show = show_release },
		{ .name = "ostype", .show = show_system },
		{ .name = "pid_max", .show = show_pids },
		{ .name = "version", .show = show_version },
	};

	procfs_register(&sys);
	procfs_register_in(&sys, &kernel);
	procfs_register_in(&sys, &fs);
	procfs_register_in(&sys, &procfs_sys_vm);
	procfs_register_in(&fs, &descriptors);
	procfs_register_in(&procfs_sys_vm, &overcommit);
	for (unsigned i = 0; i < sizeof(of_kernel) / sizeof(of_kernel[0]); i++)
		procfs_register_in(&kernel, &of_kernel[i]);
}
STARTUP(settings_register)
