/* Tests that run inside the kernel and report in KTAP, flat, one line a test. */

#include "drivers/clock/pit.h"
#include "kernel/lib/divide.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/cpu/machine.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "kernel/lib/random.h"
#include "kernel/lib/string.h"
#include "drivers/disk/trace.h"
#include "kernel/cpu/trap.h"
#include "mm/page_alloc.h"

/* Each test returns NULL, or what was wrong. */

static const char *test_format(void)
{
	char text[64];

	snprintk(text, sizeof(text), "%d %u %#x %5.3d|%-4s|%04llx|%c%%", INT32_MIN, UINT32_MAX, 255,
		 7, "ab", 0x1234567890abull, 'z');
	return strcmp(text, "-2147483648 4294967295 0xff   007|ab  |1234567890ab|z%") == 0 ? NULL
											   : "text";
}

static const char *test_divide(void)
{
	struct random random = { 2 };

	for (unsigned i = 0; i < 10000; i++) {
		uint64_t dividend = random_next(&random) >> random_below(&random, 64);
		uint32_t divisor = (random_next(&random) >> 32 >> random_below(&random, 32)) | 1,
			 rest;
		uint64_t quotient = divide64(dividend, divisor, &rest);

		if (rest >= divisor || quotient * divisor + rest != dividend)
			return "quotient * divisor + rest is not the dividend";
	}
	return NULL;
}

static const char *test_memmove(void)
{
	char text[] = "0123456789";

	memmove(text + 2, text, 8);
	if (strcmp(text, "0101234567") != 0)
		return "upwards, overlapping";
	memmove(text, text + 2, 8);
	return strcmp(text, "0123456767") == 0 ? NULL : "downwards, overlapping";
}

static const char *test_page_alloc(void)
{
	size_t free = page_free_count();
	uint8_t *pages[11];

	for (unsigned order = 0; order <= 8; order++) {
		pages[order] = page_alloc(order);
		if (!pages[order])
			return "no memory";
		if ((uintptr_t)pages[order] % (PAGE_SIZE << order) != 0)
			return "a block is not aligned to its size";
		memset(pages[order], order, PAGE_SIZE << order);
	}
	for (unsigned order = 0; order <= 8; order++) {
		if (pages[order][0] != order || pages[order][(PAGE_SIZE << order) - 1] != order)
			return "two blocks overlap";
		page_free(pages[order], order);
	}
	return page_free_count() == free ? NULL : "pages were lost";
}

static const char *test_page_exhaustion(void)
{
	void *chain = NULL;
	size_t free = page_free_count(), taken = 0;

	for (void **page; (page = page_alloc(4)); taken++) {
		*page = chain;
		chain = page;
	}
	while (chain) {
		void *next = *(void **)chain;

		page_free(chain, 4);
		chain = next;
	}
	if (page_free_count() != free)
		return "pages were lost";
	return taken > 0 && taken <= free / 16 ? NULL : "too many or too few";
}

static void *page_of_handler;

/* An interrupt handler that wants a page, as one that wakes tasks may: it keeps it for a tick. */
static void allocate_or_free(void)
{
	if (page_of_handler)
		page_free(page_of_handler, 0);
	page_of_handler = page_of_handler ? NULL : page_alloc(0);
}

/* The timer's handler takes pages while this function does. Neither may get what the other has
 * found: page_alloc itself panics then. */
static const char *test_page_interrupts(void)
{
	size_t free = page_free_count();
	uint32_t end = pit_ticks() + 2000;

	pit_on_tick = allocate_or_free;
	pit_initialize(10000);
	while (pit_ticks() < end)
		page_free(page_alloc(0), 0);
	pit_initialize(TICKS_PER_SECOND);
	pit_on_tick = NULL;
	if (page_of_handler)
		page_free(page_of_handler, 0);
	return page_free_count() == free ? NULL : "pages were lost";
}

static const char *test_clock(void)
{
	uint64_t before = time_ns(), now;

	for (unsigned i = 0; i < 1000; i++, before = now) {
		now = time_ns();
		if (now < before)
			return "the clock went back";
	}
	return NULL;
}

/* Ten timer ticks are about 100 ms on the other clock as well. A busy host may be late with some.
 */
static const char *test_ticks(void)
{
	uint32_t first = pit_ticks();
	uint64_t start, passed;

	while (pit_ticks() == first)
		wait_for_interrupt();
	start = time_ns();
	while (pit_ticks() - first < 11)
		wait_for_interrupt();
	passed = time_ns() - start;
	return passed > 50000000 && passed < 500000000 ? NULL : "ten ticks are not 100 ms";
}

static bool breakpoint_seen;

static void on_breakpoint(struct trap_frame *frame)
{
	breakpoint_seen = frame->vector == 3 && frame->error_code == 0;
}

static const char *test_trap_returns(void)
{
	uint32_t kept = 0x12345678;

	breakpoint_seen = false;
	trap_register(3, on_breakpoint);
	__asm__ volatile("int3" : "+b"(kept));
	trap_register(3, NULL);
	if (!breakpoint_seen)
		return "the handler was not called";
	return kept == 0x12345678 ? NULL : "a register changed";
}

static const char *test_trace_wraps(void)
{
	uint32_t total = trace.total;

	for (uint32_t i = 0; i <= TRACE_RECORDS; i++)
		trace_add(&(struct trace_record){ .lba = i, .drive = '?' });
	if (trace.total - total != TRACE_RECORDS + 1)
		return "the count is wrong";
	return trace.ring[(trace.total - 1) % TRACE_RECORDS].lba == TRACE_RECORDS
		   ? NULL
		   : "the last is wrong";
}

static const struct {
	const char *name;
	const char *(*run)(void);
} tests[] = {
	{ "format", test_format },
	{ "divide64", test_divide },
	{ "memmove overlaps", test_memmove },
	{ "page_alloc aligns and keeps apart", test_page_alloc },
	{ "page_alloc until nothing is left", test_page_exhaustion },
	{ "page_alloc in interrupts", test_page_interrupts },
	{ "clock never goes back", test_clock },
	{ "timer and clock agree", test_ticks },
	{ "a trap returns", test_trap_returns },
	{ "trace ring wraps", test_trace_wraps },
};

static int run_selftest(int count, char **arguments)
{
	const unsigned tests_count = sizeof(tests) / sizeof(tests[0]);
	int status = EXIT_SUCCESS;

	printk("KTAP version 1\n1..%u\n", tests_count);
	for (unsigned i = 0; i < tests_count; i++) {
		const char *wrong = tests[i].run();

		if (wrong) {
			printk("# %s\n", wrong);
			status = EXIT_FAILURE;
		}
		printk("%s %u %s\n", wrong ? "not ok" : "ok", i + 1, tests[i].name);
	}
	return status;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "selftest", "", "the kernel tests itself, told in KTAP", 0, run_selftest },
};
