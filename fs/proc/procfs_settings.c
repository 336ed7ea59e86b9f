/*
 * /proc/sys: settings, one value in each file, as sysctl(8) and C libraries read it (proc(5),
 * sysctl(2)). Those here cannot be changed; where Linux's would be written to (a host's name), a
 * system call changes them.
 */
#include "fs/files.h"
#include "fs/proc/procfs.h"
#include "kernel/abi/capability.h"
#include "kernel/process/names.h"

PROCFS_SHOW(show_last_capability, "%d\n", CAP_LAST_CAP)
PROCFS_SHOW(show_descriptors, "%u\n", FILES_MAX)

static struct procfs_entry of_kernel[] = {
	{ "cap_last_cap", .show = show_last_capability },
	{ "domainname", .text = system_names.domain },
	{ "hostname", .text = system_names.node },
	{ "ngroups_max", .text = "65536" },
	{ "osrelease", .text = system_names.release },
	{ "ostype", .text = system_names.system },
	{ "pid_max", .text = "4194304" }, /* Linux's: ps makes its columns as wide */
	{ "version", .text = system_names.version },
};

static struct procfs_entry of_fs[] = { { "nr_open", .show = show_descriptors } };

/* Memory is promised without being counted. */
static struct procfs_entry of_vm[] = { { "overcommit_memory", .text = "1" } };

struct procfs_entry procfs_sys_vm[] = { { "vm", PROCFS_ENTRIES(of_vm) } };

static struct procfs_entry directories[] = {
	{ "kernel", PROCFS_ENTRIES(of_kernel) },
	{ "fs", PROCFS_ENTRIES(of_fs) },
};

PROCFS_ENTRY(&procfs_root, sys, "sys", PROCFS_ENTRIES(directories))
PROCFS(sys, procfs_sys_vm)
