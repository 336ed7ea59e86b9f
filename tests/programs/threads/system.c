/* What programs ask of the system besides: capabilities, limits and settings as /proc shows them.
 */
#include "threads.h"

#include <linux/capability.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

static void ask_capabilities(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { 0 };

	say("capget", syscall(SYS_capget, &header, data));
	say("unchanged", syscall(SYS_capset, &header, data));
	header.pid = -1;
	say("no pid", error_of(syscall(SYS_capget, &header, data)));
	header = (struct __user_cap_header_struct){ 1, 0 };
	say("version", syscall(SYS_capget, &header, NULL));
	say("known", header.version == _LINUX_CAPABILITY_VERSION_3);
	say("unknown", error_of(syscall(SYS_capget, &header, NULL)));
	header.version = 1;
	say("and with data", error_of(syscall(SYS_capget, &header, data)));
	say("nowhere", error_of(syscall(SYS_capget, NULL, data)));
	say("one", prctl(PR_CAPBSET_READ, 63, 0, 0, 0) == -1 && errno == EINVAL);
}

static void show(const char *path, int lines)
{
	char line[128];
	FILE *file = fopen(path, "r");

	printf("%s:\n", path);
	for (int i = 0; file && i < lines && fgets(line, sizeof(line), file); i++)
		printf("%s", line);
	if (file)
		fclose(file);
}

/* Pages that are moved to where others are. */
static void move_pages(void)
{
	char *memory =
	    mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int fixed = MREMAP_MAYMOVE | MREMAP_FIXED;

	for (int i = 0; i < 8; i++)
		memory[i * 4096] = i + 1;
	say("moved", mremap(memory, 8192, 4096, fixed, memory + 4 * 4096) == memory + 4 * 4096);
	say("there", memory[4 * 4096]);
	say("after it", memory[5 * 4096]);
	say("grown", mremap(memory + 5 * 4096, 4096, 8192, fixed, memory) == memory);
	say("there", memory[0]);
	say("new", memory[4096]);
	say("overlap", mremap(memory, 8192, 8192, fixed, memory + 4096) == MAP_FAILED);
	say("error", errno);
	say("odd", mremap(memory, 4096, 4096, fixed, memory + 1) == MAP_FAILED);
	say("must move", mremap(memory, 4096, 4096, MREMAP_FIXED, memory + 8192) == MAP_FAILED);
	munmap(memory, 8 * 4096);
}

/* A call that moves much lets others run, and can be ended. */
static void move_much(void)
{
	struct timespec before, after;
	pid_t child = fork();

	if (child == 0) {
		int to = open("/dev/null", O_WRONLY), from = open("/dev/zero", O_RDONLY);

		for (;;)
			sendfile(to, from, NULL, 0x7ffff000);
	}
	clock_gettime(CLOCK_MONOTONIC, &before);
	rest(50);
	kill(child, SIGKILL);
	say("killed", end_of(child));
	clock_gettime(CLOCK_MONOTONIC, &after);
	say("soon", after.tv_sec - before.tv_sec < 2);
}

/* Priorities and advice that are taken, and refused where they are none. */
static void ask_for_turns(void)
{
	const int idle = 3 << 13, none_such = 4 << 13;
	int file = open("/tmp/threads.system", O_RDWR | O_CREAT, 0600), ends[2];
	int full = open("/dev/full", O_RDWR);
	struct timespec turn = { -1, -1 };

	say("turn", sched_rr_get_interval(0, &turn));
	say("is told", turn.tv_sec == 0 && turn.tv_nsec >= 0);
	say("of nobody", error_of(sched_rr_get_interval(0x3ffffff0, &turn)));
	say("negative", error_of(sched_rr_get_interval(-1, &turn)));
	say("ioprio",
	    syscall(SYS_ioprio_set, 1, 0, idle) == 0 && syscall(SYS_ioprio_get, 1, 0) >= 0);
	say("no such class", error_of(syscall(SYS_ioprio_set, 1, 0, none_such)));
	say("of no such kind", error_of(syscall(SYS_ioprio_get, 9, 0)));
	say("of nobody", error_of(syscall(SYS_ioprio_get, 1, 0x3ffffff0)));
	say("readahead", readahead(file, 0, 4096));
	say("no file", error_of(readahead(-1, 0, 4096)));
	say("a place in /dev/full", lseek(full, 100, SEEK_SET) + lseek(full, -5, SEEK_CUR));
	say("in a pipe", pipe(ends) ? 1 : error_of(lseek(ends[0], 0, SEEK_SET)));
	for (int i = 0; i < 2; i++)
		close(ends[i]);
	close(full);
	close(file);
	unlink("/tmp/threads.system");
}

/* In a child: what is larger than its limit fails, and nothing else. */
static void use_memory(void)
{
	const struct rlimit limit = { 100 << 20, 100 << 20 };
	const int way = MAP_PRIVATE | MAP_ANONYMOUS, access = PROT_READ | PROT_WRITE;

	setrlimit(RLIMIT_AS, &limit);
	say("much", mmap(NULL, 200 << 20, access, way, -1, 0) == MAP_FAILED ? errno : 0);
	char *memory = mmap(NULL, 1 << 20, access, way, -1, 0);

	say("little", memory != MAP_FAILED);
	say("grown", mremap(memory, 1 << 20, 200 << 20, MREMAP_MAYMOVE) == MAP_FAILED ? errno : 0);
	say("a little", mremap(memory, 1 << 20, 2 << 20, MREMAP_MAYMOVE) != MAP_FAILED);
	say("break", sbrk(200 << 20) == (void *)-1 ? errno : 0);
	say("a page", sbrk(4096) != (void *)-1);
	for (int i = 0; i < 200 && memory != MAP_FAILED; i++)
		memory = mmap(NULL, 1 << 20, access, way, -1, 0);
	say("at last", memory == MAP_FAILED);
	_exit(0);
}

/* How full it is, and since when it runs. */
static void ask_for_sizes(void)
{
	struct statvfs usage = { 0 };
	char line[256];
	long booted = -1, pages = 0;
	FILE *file = fopen("/proc/stat", "r");

	say("statvfs", statvfs("/tmp", &usage));
	say("some is used", usage.f_blocks > usage.f_bfree && usage.f_bfree > 0);
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "btime %ld", &booted);
	fclose(file);
	file = fopen("/proc/vmstat", "r");
	say("vmstat", file && fscanf(file, "nr_free_pages %ld", &pages) == 1 && pages > 0);
	fclose(file);
	struct timespec uptime;

	clock_gettime(CLOCK_BOOTTIME, &uptime);
	say("booted", labs(time(NULL) - uptime.tv_sec - booted) <= 2);
}

static long set_policy(int policy, int priority)
{
	const struct sched_param parameters = { .sched_priority = priority };

	return error_of(sched_setscheduler(0, policy, &parameters));
}

/* Without those of real time, which Linux gives to root only. */
static void policies(void)
{
	struct sched_param parameters = { .sched_priority = 7 };

	say("policy", sched_getscheduler(0));
	say("priority", sched_getparam(0, &parameters) + parameters.sched_priority);
	say("with a priority", set_policy(SCHED_OTHER, 1));
	say("without one", set_policy(SCHED_RR, 0));
	say("too high", set_policy(SCHED_FIFO, 100));
	say("none", set_policy(4, 0));
	say("unknown", set_policy(77, 0));
	parameters.sched_priority = 1;
	say("priority", error_of(sched_setparam(0, &parameters)));
	say("batch", set_policy(SCHED_BATCH, 0));
	say("policy", sched_getscheduler(0));
	say("as before", set_policy(SCHED_OTHER, 0));
	say("policy", sched_getscheduler(0));
}

void part_system(void)
{
	const struct rlimit files = { 64, 128 }, stack = { 1 << 20, 1 << 20 };
	const int zero = 0;
	unsigned processor = 1, node = 1;
	int number = 1;

	ask_capabilities();
	move_pages();
	move_much();
	ask_for_turns();
	fflush(stdout);
	pid_t child = fork();

	if (child == 0)
		use_memory();
	say("limited", end_of(child));
	ask_for_sizes();
	setrlimit(RLIMIT_NOFILE, &files);
	setrlimit(RLIMIT_STACK, &stack);
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	show("/proc/self/limits", 6);
	show("/proc/sys/kernel/ostype", 1);
	show("/proc/sys/kernel/ngroups_max", 1);
	chdir("/proc/sys/kernel/../fs");
	printf("%s\n", getcwd((char[64]){ 0 }, 64));
	chdir("/");
	say("getcpu", syscall(SYS_getcpu, &processor, &node, NULL));
	say("node", node);
	say("personality", personality(0xffffffff));
	say("of i686", personality(PER_LINUX32));
	personality(PER_LINUX);
	say("slack", prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
	say("death", prctl(PR_GET_PDEATHSIG, &number, 0, 0, 0));
	say("signal", number);
	say("keeps", prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0));
	policies();
	say("nobody", error_of(syscall(SYS_sched_setparam, 0x3ffffff0, &zero)));
	say("no word", error_of(syscall(SYS_sched_setparam, 0, NULL)) < 0);
}
