/*
 * The process with the ATA driver. Its port accesses and cli are privileged: the processor refuses
 * them, and the signal's handler asks the machine, another process, what comes of them
 * (ata_talk.h). So does what the driver needs of a kernel: time, interrupts, sleep, mutexes. What
 * is on the drives is known here only as far as the driver has read it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "drivers/clock/pic.h"
#include "drivers/disk/ata.h"
#include "drivers/disk/ata_drive.h"
#include "drivers/disk/ata_mode.h"
#include "drivers/disk/partition.h"
#include "drivers/disk/pci.h"
#include "drivers/qemu/settings.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/report/printk.h"
#include "kernel/task/lock.h"
#include "kernel/task/time.h"
#include "kernel/task/timer.h"
#include "kernel/task/wait.h"
#include "mm/page_alloc.h"
#include "tests/host/question.h"
#include "tests/storage/host/ata_talk.h"

#define MOST_PIECES 256
#define TEXT_BYTES  64

static int questions; /* the pipe; answers come on the standard input */
static uint8_t *arena, elsewhere[ELSEWHERE_SECTORS * SECTOR_SIZE];
static struct block_device *devices[4];
static char mode_at_start[TEXT_BYTES], mode_to_set[TEXT_BYTES];
static void (*handlers[16])(void);
static bool has_no_master;

static void tell(const struct message *message, const void *bytes)
{
	if (!talk_send(questions, message, bytes))
		_exit(3);
}

static void hear(void *bytes, size_t count)
{
	if (!talk_receive(STDIN_FILENO, bytes, count))
		_exit(3);
}

/* ---- what the machine calls ---- */

static uint8_t *place_of(uint32_t memory, uint32_t offset)
{
	if (memory == OWN)
		return (uint8_t *)(uintptr_t)offset;
	return (memory == ARENA ? arena : elsewhere) + offset;
}

static int transfer(const struct message *call)
{
	struct talk_piece told[MOST_PIECES];
	struct block_piece pieces[MOST_PIECES];
	unsigned count = call->bytes / sizeof(told[0]);
	struct block_transfer wanted = { .lba = call->value,
					 .is_write = call->second & 1,
					 .is_forced = call->second >> 1,
					 .pieces = pieces,
					 .piece_count = count };

	hear(told, call->bytes);
	for (unsigned i = 0; i < count; i++) {
		pieces[i] = (struct block_piece){ place_of(told[i].memory, told[i].offset),
						  told[i].sectors };
		wanted.count += told[i].sectors;
	}
	return devices[call->first]->ops->transfer(devices[call->first], &wanted);
}

static int flush(const struct message *call)
{
	struct block_transfer wanted = { .is_forced = true };

	return devices[call->first]->ops->transfer(devices[call->first], &wanted);
}

static int discard(const struct message *call)
{
	struct block_range range = { .lba = call->value, .sectors = call->second };
	struct block_piece piece = { &range, 1 };
	struct block_transfer wanted = {
		.count = 1, .is_discard = true, .pieces = &piece, .piece_count = 1
	};

	return devices[call->first]->ops->transfer(devices[call->first], &wanted);
}

/* Another task is a thread, and one of the two runs. */
static sem_t for_first, for_second;

static void *second_task(void *nothing)
{
	sem_wait(&for_second);
	ata_set_mode(mode_to_set);
	sem_post(&for_first);
	return nothing;
}

/* Until it ends, or waits for a mutex. */
static void run_second(void)
{
	sem_post(&for_second);
	sem_wait(&for_first);
}

static void begin_second(void)
{
	pthread_t second;

	pthread_create(&second, NULL, second_task, NULL);
	pthread_detach(second);
	run_second();
}

static int start(void)
{
	ata_initialize();
	return 0;
}

static int obey(const struct message *call)
{
	char text[TEXT_BYTES] = "";
	struct timer *timer = (struct timer *)(uintptr_t)call->value;

	if (call->what != CALL_TRANSFER && call->what != TAKE)
		hear(text, call->bytes);
	switch (call->what) {
	case CALL_INTERRUPT:
		handlers[call->first]();
		break;
	case CALL_ALARM:
		timer->expire(timer);
		break;
	case CALL_OTHER:
		strcpy(mode_to_set, text);
		begin_second();
		break;
	case CALL_GO_ON:
		run_second();
		break;
	case CALL_QUESTION:
		question_begins();
		break;
	case CALL_START:
		strcpy(mode_at_start, text);
		has_no_master = call->first;
		return start();
	case CALL_MODE:
		return ata_set_mode(text);
	case CALL_TRANSFER:
		return transfer(call);
	case CALL_DISCARD:
		return discard(call);
	case CALL_FLUSH:
		return flush(call);
	case TAKE:
		hear(place_of(call->first, call->second), call->bytes);
		break;
	}
	return 0;
}

/* Does what the machine calls, until it has the result of a question. */
static uint64_t serve(void *bytes)
{
	for (;;) {
		struct message call;

		hear(&call, sizeof(call));
		if (call.what == RESULT) {
			hear(bytes, call.bytes);
			return call.value;
		}
		struct message end = { .what = END };
		const void *given = NULL;

		if (call.what == GIVE) {
			given = place_of(call.first, call.second);
			end.bytes = (uint32_t)call.value;
		} else {
			end.value = (uint64_t)(int64_t)obey(&call);
		}
		tell(&end, given);
	}
}

static uint64_t ask(uint32_t what, uint32_t first, uint64_t value)
{
	tell(&(struct message){ .what = what, .first = first, .value = value }, NULL);
	return serve(NULL);
}

static uint64_t ask_about(uint32_t what, const volatile void *object, uint64_t value)
{
	return ask(what, (uint32_t)(uintptr_t)object, value);
}

/* ---- the processor ---- */

static void strings(unsigned size, bool is_in, uint16_t port, greg_t *registers, bool is_repeated)
{
	uint8_t **place = (uint8_t **)&registers[is_in ? REG_EDI : REG_ESI];
	uint32_t count = is_repeated ? registers[REG_ECX] : 1;
	struct message question = { .what = is_in ? ASK_IN : ASK_OUT,
				    .first = port,
				    .second = size << 16 | (count & 0xffff),
				    .bytes = is_in ? 0 : count * size };

	tell(&question, *place);
	serve(*place);
	*place += count * size;
	if (is_repeated)
		registers[REG_ECX] = 0;
}

/* Whether this port starts a command, and its channel has an answer already. */
static bool has_answer(uint16_t port)
{
	for (unsigned drives = 0; drives < 4; drives++) {
		const struct block_device *device = devices[drives];
		const struct ata_drive *drive = device ? device->driver : NULL;

		if (drive && drive->channel->command_block + ATA_COMMAND == port)
			return drive->channel->is_answered;
	}
	return false;
}

static void one(unsigned size, bool is_in, uint16_t port, greg_t *registers)
{
	uint32_t value = (uint32_t)registers[REG_EAX];
	struct message question = { .what = is_in ? ASK_IN : ASK_OUT,
				    .first = port,
				    .second = size << 16 | 1,
				    .bytes = is_in ? 0 : size,
				    .value = !is_in && has_answer(port) };

	tell(&question, &value);
	serve(&value);
	registers[REG_EAX] = (greg_t)value;
}

/* Does what a refused instruction says. Returns its length; 0: it is another one. */
static unsigned execute(const uint8_t *code, greg_t *registers)
{
	unsigned at = 0, size = 4;
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
	unsigned bytes = code[at] & 1 ? size : 1;

	switch (code[at]) {
	case 0xec:
	case 0xed:
	case 0xee:
	case 0xef:
		one(bytes, code[at] < 0xee, port, registers);
		return at + 1;
	case 0x6c:
	case 0x6d:
	case 0x6e:
	case 0x6f:
		strings(bytes, code[at] < 0x6e, port, registers, is_repeated);
		return at + 1;
	case 0xfa:
	case 0xfb:
		ask(code[at] == 0xfa ? ASK_CLI : ASK_STI, 0, 0);
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
		ask(ASK_CRASH, 0, 0);
		_exit(5);
	}
	registers[REG_EIP] += length;
}

/* ---- the rest of the kernel ---- */

uint64_t time_ns(void)
{
	return ask(ASK_TIME, 0, 0);
}

void msleep(uint32_t milliseconds)
{
	ask(ASK_MSLEEP, 0, milliseconds);
}

void printk(const char *format, ...)
{
	va_list arguments;
	char text[512];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	tell(&(struct message){ .what = ASK_SAY, .bytes = strlen(text) }, text);
	serve(NULL);
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
	ask(ASK_HANDLER, line, 0);
}

void timer_start(struct timer *timer, uint64_t deadline_ns, void (*expire)(struct timer *timer))
{
	timer->deadline = deadline_ns;
	timer->expire = expire;
	ask_about(ASK_ALARM, timer, deadline_ns);
}

void timer_cancel(struct timer *timer)
{
	ask_about(ASK_CANCEL, timer, 0);
}

void wait_wake(struct wait_queue *queue)
{
	ask_about(ASK_WAKE, queue, 0);
}

void wait_sleep_blocked(struct wait_queue *queue)
{
	ask_about(ASK_SLEEP, queue, 0);
}

/* Only the second task is ever told to wait. */
void mutex_lock(struct mutex *mutex)
{
	while (!ask_about(ASK_LOCK, mutex, 0)) {
		sem_post(&for_first);
		sem_wait(&for_second);
	}
	mutex->owner = (struct task *)mutex;
}

void mutex_unlock(struct mutex *mutex)
{
	mutex->owner = NULL;
	ask_about(ASK_UNLOCK, mutex, 0);
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
	return !has_no_master;
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
	unsigned number = (unsigned)(device->name[2] - 'a') & 3;

	devices[number] = device;
	ask(ASK_DRIVE, number, 0);
}

void partitions_register(struct block_device *drive)
{
}

/* Pages at an address. */
static void *pages_at(uintptr_t address, size_t bytes)
{
	return mmap((void *)address, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };

	questions = dup(STDOUT_FILENO); /* what is printed is no question */
	if (questions < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return 2;
	arena = pages_at(KERNEL_BASE + ARENA_AT, ARENA_BYTES);
	if (arena == MAP_FAILED || pages_at(BORDER_AT / 4096 * 4096, BORDER_BYTES) == MAP_FAILED ||
	    sigaction(SIGSEGV, &action, NULL) != 0)
		return 2;
	serve(NULL);
	return 0;
}
