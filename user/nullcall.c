/*
 * nullcall [COUNT]: the price of asking the kernel for nothing: a function for comparison, INT
 * 0x80, and SYSENTER through the shared page.
 */
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/measure.h"

static void (*shared_entry)(void); /* AT_SYSINFO: takes a call's registers, as INT 0x80 does */

static int __attribute__((noinline)) call_function(void)
{
	__asm__ volatile("");
	return 1;
}

static int call_gate(void)
{
	int result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(SYS_getpid) : "memory");
	return result;
}

static int call_shared_entry(void)
{
	int result;

	__asm__ volatile("call *%2"
			 : "=a"(result)
			 : "a"(SYS_getpid), "r"(shared_entry)
			 : "memory", "ecx", "edx");
	return result;
}

static void measure(const char *what, int (*call)(void), unsigned count)
{
	call();
	uint64_t start = counter_read();

	for (unsigned i = 0; i < count; i++)
		call();
	counter_report(what, counter_read() - start, count);
}

int main(int count, char **arguments)
{
	unsigned times = count > 1 ? strtoul(arguments[1], NULL, 10) : 10000;

	if (times == 0) {
		fprintf(stderr, "usage: nullcall [COUNT]\n");
		return 2;
	}
	shared_entry = (void (*)(void))getauxval(AT_SYSINFO);
	measure("function", call_function, times);
	measure("getpid by INT 0x80", call_gate, times);
	if (!shared_entry) {
		puts("the kernel has no shared page: no SYSENTER");
		return 0;
	}
	if (call_gate() != call_shared_entry()) {
		puts("the two gates give different answers");
		return 1;
	}
	measure("getpid by the shared page", call_shared_entry, times);
	return 0;
}
