/*
 * Unit tests of the allocators, compiled for the host as an i386 program.
 *   units                      prints the tests' names
 *   units NAME SEED ROUNDS     runs a test; prints nothing, or what is wrong, with status 1
 */
#include "tests/host/mm/machine.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel/cpu/memory_layout.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "kernel/report/symbols.h"
#include "mm/audit.h"
#include "mm/memory_map.h"
#include "mm/page.h"
#include "tests/host/mm/shadow/kernel/cpu/interrupts.h"

static const struct unit_test *const files[] = {
	page_array_tests,
	buddy_tests,
	slab_tests,
	kmalloc_tests,
};

uint32_t unit_round;
static uint64_t seed;
bool machine_interrupts = true;

static jmp_buf panic_return;
static bool panic_expected;
static char panic_message[512];

__asm__(".globl kernel_end\n.set kernel_end, 0xc0181234"); /* MACHINE_KERNEL_END */

struct boot_info boot_info;

/* --- what the kernel's functions call --- */

void panic(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintk(panic_message, sizeof(panic_message), format, arguments);
	va_end(arguments);
	if (!panic_expected)
		unit_fail("the kernel", 0, "panic: %s", panic_message);
	longjmp(panic_return, 1);
}

void printk(const char *format, ...)
{
	char line[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintk(line, sizeof(line), format, arguments);
	va_end(arguments);
	fputs(line, stdout);
}

/* There are no names. */
uintptr_t symbol_start(uintptr_t address)
{
	(void)address;
	return 0;
}

int symbol_describe(uintptr_t address, char *buffer, size_t size)
{
	return snprintk(buffer, size, "%#x", (uint32_t)address);
}

/* --- what the tests call --- */

void unit_fail(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	printf("%s:%d: seed %" PRIu64 ", round %u: ", file, line, seed, unit_round);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	exit(EXIT_FAILURE);
}

const char *unit_panic_of(void (*call)(void *), void *argument)
{
	bool panicked = true;

	panic_expected = true;
	if (!setjmp(panic_return)) {
		call(argument);
		panicked = false;
	}
	panic_expected = false;
	machine_interrupts = true;
	return panicked ? panic_message : NULL;
}

void machine_start(uint32_t megabytes, const struct boot_memory_range *ranges, uint32_t count)
{
	void *start = direct_map(0);
	size_t size = (size_t)megabytes << 20;

	if (mmap(start, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != start)
		REQUIRE(false, "no room for memory at %p", start);
	memset(start, 0xa5, size);
	boot_info.range_count = count;
	memcpy(boot_info.ranges, ranges, count * sizeof(*ranges));
	memory_map_initialize();
	page_frames = 0;
	page_array_initialize();
}

void machine_start_pc(uint32_t megabytes)
{
	const struct boot_memory_range ranges[] = {
		{ 0, 0x9fc00, 1 },
		{ 0x9fc00, 0x400, 2 },
		{ 0xf0000, 0x10000, 2 },
		{ 0x100000, ((uint64_t)megabytes << 20) - 0x120000, 1 },
		{ ((uint64_t)megabytes << 20) - 0x20000, 0x20000, 2 },
		{ 0xfffc0000, 0x40000, 2 },
	};

	machine_start(megabytes, ranges, sizeof(ranges) / sizeof(ranges[0]));
}

void machine_audit(void)
{
	REQUIRE(machine_interrupts, "interrupts were left disabled");
	uint32_t found = memory_audit();

	REQUIRE(found == 0, "the auditor finds %u contradictions", found);
}

/* --- the command line --- */

int main(int count, char **arguments)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		for (const struct unit_test *test = files[i]; test->name; test++) {
			if (count < 4) {
				puts(test->name);
			} else if (strcmp(test->name, arguments[1]) == 0) {
				struct random random = { strtoull(arguments[2], NULL, 0) };

				seed = random.state;
				test->run(&random, strtoul(arguments[3], NULL, 0));
				return EXIT_SUCCESS;
			}
		}
	REQUIRE(count < 4, "there is no test %s", arguments[1]);
	return EXIT_SUCCESS;
}
