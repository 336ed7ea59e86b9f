/*
 * What the ATA driver needs of a kernel, on the host. Its port accesses and cli are privileged: the
 * processor refuses them, and the signal's handler does what they say. There is one task; while it
 * sleeps, time goes to what comes next: a drive that has finished, or the alarm.
 */
#define _GNU_SOURCE
#include "tests/storage/host/ata_kernel.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "drivers/clock/pic.h"
#include "drivers/disk/ata.h"
#include "drivers/disk/ata_mode.h"
#include "drivers/disk/pci.h"
#include "drivers/disk/partition.h"
#include "drivers/qemu/settings.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/report/printk.h"
#include "kernel/task/lock.h"
#include "kernel/task/time.h"
#include "kernel/task/timer.h"
#include "kernel/task/wait.h"
#include "mm/page_alloc.h"
#include "tests/storage/host/ata_drives.h"

#define ARENA_AT    0x04000000u /* physical */
#define ARENA_BYTES (1u << 20)

uint8_t *arena;
uint64_t limit;
unsigned sleeps;
struct block_device *devices[4];
const char *mode_at_start;
bool is_in_handler;
static bool is_enabled = true;
static void (*handlers[16])(void);

/* ---- the processor ---- */

static void deliver(void)
{
	drives_step();
	for (unsigned i = 0; i < CHANNELS && is_enabled && !is_in_handler; i++) {
		struct channel *channel = &channels_of_model[i];

		if (!channel->is_pending || !handlers[14 + i])
			continue;
		channel->is_pending = false;
		is_in_handler = true;
		handlers[14 + i]();
		is_in_handler = false;
	}
}

static void begin_second(void);

static void pass(uint64_t ns)
{
	now += ns;
	if (now > limit) {
		printf("! it waits without end\n");
		exit(4);
	}
}

static void strings(unsigned size, bool is_in, uint16_t port, greg_t *registers, bool is_repeated)
{
	uintptr_t *place = (uintptr_t *)&registers[is_in ? REG_EDI : REG_ESI];
	uint32_t count = is_repeated ? registers[REG_ECX] : 1;

	for (; count > 0; count--, *place += size) {
		uint32_t value = 0;

		if (is_in)
			value = port_in(port, size);
		else
			memcpy(&value, (void *)*place, size);
		if (is_in)
			memcpy((void *)*place, &value, size);
		else
			port_out(port, size, value);
	}
	if (is_repeated)
		registers[REG_ECX] = 0;
}

/* Does what a refused instruction says. Returns its length; 0: it is another one. */
static unsigned execute(const uint8_t *code, greg_t *registers)
{
	unsigned at = 0, size = 4, bytes;
	bool is_repeated = false;
	uint16_t port = registers[REG_EDX];

	for (;; at++) {
		if (code[at] == 0x66)
			size = 2;
		else if (code[at] == 0xf3)
			is_repeated = true;
		else
			break;
	}
	bytes = code[at] & 1 ? size : 1;
	uint32_t mask = bytes == 4 ? 0xffffffffu : (1u << 8 * bytes) - 1;

	switch (code[at]) {
	case 0xec:
	case 0xed:
		registers[REG_EAX] = (registers[REG_EAX] & ~mask) | (port_in(port, bytes) & mask);
		return at + 1;
	case 0xee:
	case 0xef:
		port_out(port, bytes, registers[REG_EAX] & mask);
		return at + 1;
	case 0x6c:
	case 0x6d:
		strings(bytes, true, port, registers, is_repeated);
		return at + 1;
	case 0x6e:
	case 0x6f:
		strings(bytes, false, port, registers, is_repeated);
		return at + 1;
	case 0xfa:
		is_enabled = false;
		return at + 1;
	case 0xfb:
		is_enabled = true;
		deliver();
		return at + 1;
	}
	return 0;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	unsigned length = execute((const uint8_t *)registers[REG_EIP], registers);

	(void)info;
	if (length == 0) {
		printf("! it crashes\n");
		fflush(stdout);
		_exit(5);
	}
	registers[REG_EIP] += length;
	if (now > limit)
		pass(0);
	deliver();
}

/* ---- the rest ---- */

uint64_t time_ns(void)
{
	pass(20);
	deliver();
	return now;
}

void printk(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("> ");
	vprintf(format, arguments);
	va_end(arguments);
}

int snprintk(char *buffer, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int length = vsnprintf(buffer, size, format, arguments);

	va_end(arguments);
	return length;
}

void irq_register(unsigned line, void (*handler)(void))
{
	handlers[line] = handler;
}

static struct timer *alarm_set;
static const struct wait_queue *woken;

void timer_start(struct timer *timer, uint64_t deadline_ns, void (*expire)(struct timer *timer))
{
	if (alarm_set == timer)
		blame("the alarm is set while it runs");
	timer->deadline = deadline_ns;
	timer->expire = expire;
	alarm_set = timer;
}

void timer_cancel(struct timer *timer)
{
	if (alarm_set == timer)
		alarm_set = NULL;
}

static void ring(void)
{
	struct timer *timer = alarm_set;

	if (timer && timer->deadline <= now) {
		alarm_set = NULL;
		timer->expire(timer);
	}
}

void wait_wake(struct wait_queue *queue)
{
	woken = queue;
}

/* The time goes to what comes next. */
static void go_on(void)
{
	uint64_t next = drives_next();

	if (alarm_set && alarm_set->deadline < next)
		next = alarm_set->deadline;
	if (next == UINT64_MAX) {
		printf("! it sleeps, and nothing will wake it\n");
		exit(4);
	}
	pass(next > now ? next - now : 1);
}

void wait_sleep_blocked(struct wait_queue *queue)
{
	sleeps++;
	if (is_enabled) {
		blame("it sleeps with interrupts enabled");
		deliver();
	}
	woken = NULL;
	is_enabled = true;
	for (;;) {
		begin_second();
		deliver();
		ring();
		if (woken == queue)
			break;
		go_on();
	}
	is_enabled = false;
}

void msleep(uint32_t milliseconds)
{
	pass(milliseconds * 1000000ull);
	deliver();
}

/* ---- another task: a thread, and one of the two runs ---- */

static sem_t for_first, for_second;
static const char *mode_to_set;
static pthread_t second;
static bool has_second, second_waits, is_second;

static void *second_task(void *nothing)
{
	sem_wait(&for_second);
	ata_set_mode(mode_to_set);
	has_second = second_waits = false;
	sem_post(&for_first);
	return nothing;
}

/* Until it ends, or waits for a mutex. */
static void run_second(void)
{
	is_second = true;
	sem_post(&for_second);
	sem_wait(&for_first);
	is_second = false;
}

void kernel_switch(const char *mode)
{
	mode_to_set = mode;
}

static void begin_second(void)
{
	if (!mode_to_set || has_second || drives_next() == UINT64_MAX)
		return;
	has_second = true;
	pthread_create(&second, NULL, second_task, NULL);
	pthread_detach(second);
	run_second();
	mode_to_set = NULL;
}

static unsigned locked;

/* The owner is a number: 1 or 2. */
void mutex_lock(struct mutex *mutex)
{
	struct task *me = (struct task *)(uintptr_t)(is_second ? 2 : 1);

	if (mutex->owner == me)
		blame("the channel is locked twice");
	while (is_second && mutex->owner) {
		second_waits = true;
		sem_post(&for_first);
		sem_wait(&for_second);
	}
	mutex->owner = me;
	locked++;
}

void mutex_unlock(struct mutex *mutex)
{
	if (!mutex->owner)
		blame("the channel is unlocked by nobody");
	mutex->owner = NULL;
	locked--;
	if (!is_second && second_waits)
		run_second();
}

void *page_alloc(unsigned order)
{
	static unsigned used;

	(void)order;
	return arena + ARENA_FOR_SECTORS + 4096 * used++;
}

int setting_read(const char *name, char *buffer, uint32_t size)
{
	return snprintf(buffer, size, "%s", mode_at_start);
}

bool pci_find(uint16_t class_and_subclass, uint32_t *function)
{
	*function = 0;
	return true;
}

uint32_t pci_read(uint32_t function, unsigned offset)
{
	return offset == PCI_BAR(4) ? 0xc001 : 0;
}

void pci_write(uint32_t function, unsigned offset, uint32_t value)
{
}

void block_register(struct block_device *device)
{
	devices[device->name[2] - 'a'] = device;
}

void partitions_register(struct block_device *drive)
{
}

void *memory_at(uint32_t physical, uint32_t bytes)
{
	uint32_t offset = physical - ARENA_AT;

	return offset < ARENA_BYTES && bytes <= ARENA_BYTES - offset ? arena + offset : NULL;
}

bool kernel_start(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };

	arena =
	    mmap((void *)(uintptr_t)(KERNEL_BASE + ARENA_AT), ARENA_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	return arena != MAP_FAILED && sigaction(SIGSEGV, &action, NULL) == 0;
}

void kernel_check(void)
{
	if (alarm_set)
		blame("the alarm stays set");
	alarm_set = NULL;
	if (locked || has_second)
		blame("the channel stays locked");
	locked = 0;
}
