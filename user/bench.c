/*
 * bench: instructions per operation. A Linux program, linked statically, that runs on Linux and on
 * a kernel of the course.
 *
 * The processor's time stamp counter must count instructions, as QEMU's does under
 * `-icount shift=0`; elsewhere the figures are ticks of some clock. System calls are made by int
 * 0x80, without a C library between.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls that the kernels of the course may do without; and so may its C library. */
#define SYS_MOUNT     21
#define SYS_GETRANDOM 355

#define PAGE_SIZE     4096u
#define PAGES	      256u
#define ROUNDS	      11u
#define NOTHING	      "nothing" /* the argument with which it ends at once */
#define WARM_UP_TIMES 2
#define LINE_SIZE     160

/* A row of the table. `run` does this many operations, and returns what the last call of the last
 * one returned: negative is -errno. Each operation counts as `units`. */
struct row {
	const char *name;
	long (*run)(uint32_t count);
	uint32_t count;
	uint32_t units;
	long (*prepare)(void); /* negative: the row cannot be had. NULL: nothing is needed */
	void (*finish)(void);  /* undoes it */
};

static const char *program; /* the path of this file, for execve */
static const char *name;    /* the end of that path, with which each line begins */
static uint8_t memory[PAGES * PAGE_SIZE] __attribute__((aligned(4096)));
static int file;
static int requests[2], answers[2]; /* pipes */
static long child;
static unsigned long sysenter_entry;

/* --- system calls --- */

static inline long call(long number, long first, long second, long third, long fourth)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(first), "c"(second), "d"(third), "S"(fourth)
			 : "memory");
	return result;
}

static inline long call_nothing(long number)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number) : "memory");
	return result;
}

/* By the kernel's own entry, which takes the fastest way that it has. */
static inline long call_shared_page(long number)
{
	long result;

	__asm__ volatile("call *%2" : "=a"(result) : "a"(number), "m"(sysenter_entry) : "memory");
	return result;
}

/* The sixth argument, the offset, goes where the compiler may keep its frame. */
static long map_pages(uint32_t pages)
{
	long result;

	__asm__ volatile("push %%ebp\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "int $0x80\n\t"
			 "pop %%ebp"
			 : "=a"(result)
			 : "a"(SYS_mmap2), "b"(0), "c"(pages * PAGE_SIZE),
			   "d"(PROT_READ | PROT_WRITE), "S"(MAP_PRIVATE | MAP_ANONYMOUS), "D"(-1)
			 : "memory");
	return result;
}

/* Addresses are not errors, though they may be negative numbers. */
static bool is_error(long result)
{
	return (unsigned long)result > -4096ul;
}

static void leave(int status)
{
	for (;;)
		call(SYS_exit_group, status, 0, 0, 0);
}

/* --- one system call --- */

static long empty(uint32_t count)
{
	for (; count; count--)
		__asm__ volatile("");
	return 0;
}

static long getpid_int80(uint32_t count)
{
	long result = 0;

	for (; count; count--)
		result = call_nothing(SYS_getpid);
	return result;
}

static long find_sysenter(void)
{
	sysenter_entry = getauxval(AT_SYSINFO);
	return sysenter_entry ? 0 : -ENOSYS;
}

static long getpid_sysenter(uint32_t count)
{
	long result = 0;

	for (; count; count--)
		result = call_shared_page(SYS_getpid);
	return result;
}

static long yield_int80(uint32_t count)
{
	long result = 0;

	for (; count; count--)
		result = call_nothing(SYS_sched_yield);
	return result;
}

/* --- files --- */

static long open_zero(void)
{
	file = call(SYS_open, (long)"/dev/zero", O_RDONLY, 0, 0);
	return file;
}

static void close_file(void)
{
	call(SYS_close, file, 0, 0, 0);
}

static long read_byte(uint32_t count)
{
	long result = 0;

	for (; count; count--)
		result = call(SYS_read, file, (long)memory, 1, 0);
	return result;
}

static long open_and_close(uint32_t count)
{
	long result = 0;

	for (; count; count--) {
		result = call(SYS_open, (long)"/dev/null", O_RDONLY, 0, 0);
		result = call(SYS_close, result, 0, 0, 0);
	}
	return result;
}

/* --- pipes --- */

static long open_pipe(void)
{
	return call(SYS_pipe, (long)requests, 0, 0, 0);
}

static void close_pipe(void)
{
	call(SYS_close, requests[0], 0, 0, 0);
	call(SYS_close, requests[1], 0, 0, 0);
}

static long write_and_read(uint32_t count)
{
	long result = 0;

	for (; count; count--) {
		call(SYS_write, requests[1], (long)memory, 1, 0);
		result = call(SYS_read, requests[0], (long)memory, 1, 0);
	}
	return result;
}

/* The other process: sends back each byte, until the pipe's only writer is gone. */
static void echo(void)
{
	call(SYS_close, requests[1], 0, 0, 0);
	while (call(SYS_read, requests[0], (long)memory, 1, 0) == 1)
		call(SYS_write, answers[1], (long)memory, 1, 0);
	leave(EXIT_SUCCESS);
}

static long start_echo(void)
{
	long result = open_pipe();

	if (result < 0)
		return result;
	result = call(SYS_pipe, (long)answers, 0, 0, 0);
	if (result < 0)
		return result;
	child = call(SYS_fork, 0, 0, 0, 0);
	if (child == 0)
		echo();
	return child;
}

static void end_echo(void)
{
	close_pipe();
	call(SYS_close, answers[0], 0, 0, 0);
	call(SYS_close, answers[1], 0, 0, 0);
	call(SYS_wait4, child, 0, 0, 0);
}

static long round_trip(uint32_t count)
{
	long result = 0;

	for (; count; count--) {
		call(SYS_write, requests[1], (long)memory, 1, 0);
		result = call(SYS_read, answers[0], (long)memory, 1, 0);
	}
	return result;
}

/* --- processes --- */

/* Waits for a child that was made, which leaves with 0 or the number of an error. */
static long wait_for(long process)
{
	int status = 0;
	long result = process < 0 ? process : call(SYS_wait4, process, (long)&status, 0, 0);

	if (result >= 0 && status != 0)
		result = WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
	return result;
}

static long fork_exit_wait(uint32_t count)
{
	long result = 0;

	for (; count && result >= 0; count--) {
		result = call(SYS_fork, 0, 0, 0, 0);
		if (result == 0)
			leave(EXIT_SUCCESS);
		result = wait_for(result);
	}
	return result;
}

static long fork_exec_wait(uint32_t count)
{
	const char *arguments[] = { program, NOTHING, NULL };
	const char *environment[] = { NULL };
	long result = 0;

	for (; count && result >= 0; count--) {
		result = call(SYS_fork, 0, 0, 0, 0);
		if (result == 0)
			leave(-call(SYS_execve, (long)program, (long)arguments, (long)environment,
				    0));
		result = wait_for(result);
	}
	return result;
}

/* --- memory --- */

static void touch(uint8_t *pages)
{
	for (uint32_t i = 0; i < PAGES; i++)
		((volatile uint8_t *)pages)[i * PAGE_SIZE] = 1;
}

static long map_and_unmap(uint32_t count)
{
	long result = 0;

	for (; count; count--) {
		result = map_pages(1);
		result = call(SYS_munmap, result, PAGE_SIZE, 0, 0);
	}
	return result;
}

static long map_touch_unmap(uint32_t count)
{
	long result = 0;

	for (; count; count--) {
		result = map_pages(PAGES);
		if (is_error(result))
			return result;
		touch((uint8_t *)result);
		result = call(SYS_munmap, result, sizeof(memory), 0, 0);
	}
	return result;
}

static long touch_memory(void)
{
	touch(memory);
	return 0;
}

static long fork_touch_wait(uint32_t count)
{
	long result = 0;

	for (; count && result >= 0; count--) {
		result = call(SYS_fork, 0, 0, 0, 0);
		if (result == 0) {
			touch(memory);
			leave(EXIT_SUCCESS);
		}
		result = wait_for(result);
	}
	return result;
}

/* What comes later forks with more memory in use, so that is the last. */
static const struct row rows[] = {
	{ "getpid_int80", getpid_int80, 1000, 1, NULL, NULL },
	{ "getpid_sysenter", getpid_sysenter, 1000, 1, find_sysenter, NULL },
	{ "sched_yield", yield_int80, 1000, 1, NULL, NULL },
	{ "read_zero", read_byte, 1000, 1, open_zero, close_file },
	{ "open_close", open_and_close, 100, 1, NULL, NULL },
	{ "pipe_one", write_and_read, 100, 1, open_pipe, close_pipe },
	{ "pipe_two", round_trip, 100, 1, start_echo, end_echo },
	{ "fork_exit", fork_exit_wait, 2, 1, NULL, NULL },
	{ "fork_exec", fork_exec_wait, 2, 1, NULL, NULL },
	{ "mmap_munmap", map_and_unmap, 100, 1, NULL, NULL },
	{ "mmap_touch", map_touch_unmap, 1, PAGES, NULL, NULL },
	{ "fork_touch", fork_touch_wait, 1, 1, touch_memory, NULL },
};

#define ROW_COUNT (sizeof(rows) / sizeof(*rows))

/* --- the measurement --- */

static uint64_t count_of_instructions(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

/* Instructions of one round; those of reading the counter are in both differences. */
static uint32_t round_of(long (*run)(uint32_t count), uint32_t count)
{
	uint64_t start = count_of_instructions();

	run(count);
	return count_of_instructions() - start;
}

static int compare(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

/* Instructions of all rounds, the lowest first, without those of the loop. */
static void measure(const struct row *row, uint32_t *results)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t loop = round_of(empty, row->count), all = round_of(row->run, row->count);

		results[i] = all > loop ? all - loop : 0;
	}
	qsort(results, ROUNDS, sizeof(*results), compare);
}

static uint32_t per_unit(const struct row *row, uint32_t instructions)
{
	uint32_t units = row->count * row->units;

	return (instructions + units / 2) / units;
}

static void say(const char *line)
{
	call(SYS_write, STDOUT_FILENO, (long)line, strlen(line), 0);
}

static void report_missing(const struct row *row, long error)
{
	char line[LINE_SIZE];

	if (error == -ENOSYS)
		snprintf(line, sizeof(line), "%s %s none\n", name, row->name);
	else
		snprintf(line, sizeof(line), "%s %s error %ld\n", name, row->name, -error);
	say(line);
}

static void report(const struct row *row, const uint32_t *results)
{
	char line[LINE_SIZE];

	snprintf(line, sizeof(line), "%s %s %u from %u to %u\n", name, row->name,
		 per_unit(row, results[ROUNDS / 2]), per_unit(row, results[0]),
		 per_unit(row, results[ROUNDS - 1]));
	say(line);
}

static void run_row(const struct row *row)
{
	uint32_t results[ROUNDS];
	long result = row->prepare ? row->prepare() : 0;

	if (result < 0) {
		report_missing(row, result);
		return;
	}
	for (int i = 0; i < WARM_UP_TIMES && !is_error(result); i++)
		result = row->run(row->count);
	if (is_error(result)) {
		report_missing(row, result);
	} else {
		measure(row, results);
		report(row, results);
	}
	if (row->finish)
		row->finish();
}

/* What a Linux lacks that has only just started, and has nothing but this program: devices, and
 * random numbers. Until there are enough of them, each new process looks for more. */
static void prepare_linux(void)
{
	long result = SYS_MOUNT;

	if (call(SYS_access, (long)"/dev/zero", R_OK, 0, 0) == -ENOENT)
		__asm__ volatile("int $0x80" /* the fifth argument, data, is NULL */
				 : "+a"(result)
				 : "b"("devtmpfs"), "c"("/dev"), "d"("devtmpfs"), "S"(0), "D"(NULL)
				 : "memory");
	call(SYS_GETRANDOM, (long)memory, 1, 0, 0);
}

/* Goes on as the next program of the list, which ends in NULL; then as the only process there is.
 */
static void go_on(char **programs)
{
	const char *environment[] = { NULL };

	if (programs[0])
		call(SYS_execve, (long)programs[0], (long)programs, (long)environment, 0);
	say("end\n");
	if (call_nothing(SYS_getpid) == 1)
		call(SYS_reboot, 0xfee1dead, 0x28121969, RB_POWER_OFF, 0);
}

/* arguments: this program's path, and those of others that are to run after it. */
int main(int count, char **arguments)
{
	if (count > 1 && strcmp(arguments[1], NOTHING) == 0)
		return EXIT_SUCCESS;
	program = arguments[0];
	name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
	prepare_linux();
	for (uint32_t i = 0; i < ROW_COUNT; i++)
		run_row(&rows[i]);
	go_on(arguments + 1);
	return EXIT_SUCCESS;
}
