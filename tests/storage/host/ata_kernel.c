/*
 * What the ATA driver needs of a kernel and of a machine: ports, time, interrupts, one alarm,
 * sleep, mutexes. The driver is another process (ata_inside.c), and each of these is a question of
 * it, so that what it does is seen here, and what it says of itself counts for nothing. There is
 * one task; while it sleeps, time goes to what comes next: a drive that has finished, or the alarm.
 */
#include "tests/storage/host/ata_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/storage/host/ata_drives.h"

#define FIRST_IRQ 14
#define MUTEXES	  16
#define LOOK_NS	  20 /* a look at the clock */
#define SAY_NS	  10000
#define SOON	  16 /* who looks again and again sees it go on by a part of what has passed */

uint64_t limit;
unsigned sleeps;
bool is_there[4];
bool is_in_handler;
bool is_polled;
bool waits_at_cli;
bool watches_wire;
bool has_started;
bool waits_at_status;
static bool is_enabled = true;
static bool has_handler[16];

static void answer(const struct message *question);

/* ---- the other process ---- */

static int calls; /* the pipe; questions come on the standard input */

bool kernel_start(void)
{
	calls = dup(STDOUT_FILENO);
	return calls >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

static void stop(const char *why)
{
	printf("! %s\n", why);
	exit(4);
}

static void send(const struct message *message, const void *bytes)
{
	if (!talk_send(calls, message, bytes))
		exit(7);
}

static void receive(void *bytes, size_t count)
{
	if (!talk_receive(STDIN_FILENO, bytes, count))
		exit(7);
}

static void reply(uint64_t value, const void *bytes, uint32_t count)
{
	send(&(struct message){ .what = RESULT, .value = value, .bytes = count }, bytes);
}

/* Answers questions until the call has ended; `given` gets `most` bytes. */
static int64_t attend(void *given, uint32_t most)
{
	for (;;) {
		struct message message;

		receive(&message, sizeof(message));
		if (message.what != END) {
			answer(&message);
			continue;
		}
		if (message.bytes != most)
			stop("it ends a call that is another one");
		receive(given, most);
		return (int64_t)message.value;
	}
}

int64_t call(uint32_t what, uint32_t first, uint32_t second, uint64_t value, const void *bytes,
	     uint32_t count)
{
	struct message message = {
		.what = what, .first = first, .second = second, .value = value, .bytes = count
	};

	send(&message, bytes);
	return attend(NULL, 0);
}

void memory_get(enum memory memory, uint32_t offset, void *bytes, uint32_t count)
{
	send(&(struct message){ GIVE, memory, offset, .value = count }, NULL);
	attend(bytes, count);
}

void memory_put(enum memory memory, uint32_t offset, const void *bytes, uint32_t count)
{
	call(TAKE, memory, offset, 0, bytes, count);
}

bool memory_has(uint32_t physical, uint32_t bytes)
{
	uint32_t offset = physical - ARENA_AT, border = physical + KERNEL_AT - BORDER_AT;

	return (offset < ARENA_BYTES && bytes <= ARENA_BYTES - offset) ||
	       (border < LAST_BYTES && bytes <= LAST_BYTES - border);
}

/* ---- time ---- */

static void pass(uint64_t ns)
{
	now += ns;
	if (now > limit)
		stop("it waits without end");
}

/* Who waits by looking at the clock need not look a million times. */
static uint64_t look(bool is_again)
{
	static uint64_t since;
	uint64_t ns = LOOK_NS;

	if (!is_again)
		since = now;
	else if ((now - since) / SOON > ns)
		ns = (now - since) / SOON;
	pass(ns);
	return now;
}

/* ---- interrupts ---- */

static void deliver(void)
{
	drives_step();
	for (unsigned i = 0; i < CHANNELS && is_enabled && !is_in_handler; i++) {
		struct channel *channel = &channels_of_model[i];

		if (!channel->is_pending || !has_handler[FIRST_IRQ + i])
			continue;
		channel->is_pending = false;
		if (is_polled)
			blame("a drive interrupts, and the mode is polled");
		is_in_handler = true;
		call(CALL_INTERRUPT, FIRST_IRQ + i, 0, 0, NULL, 0);
		is_in_handler = false;
		if (watches_wire && channel->is_interrupting)
			blame("the handler returns, and the drive still raises its interrupt");
	}
}

static uint32_t alarm_set; /* the timer; 0: none */
static uint64_t alarm_at;
static uint32_t woken; /* the queue */

static void set_alarm(uint32_t timer, uint64_t deadline)
{
	if (alarm_set == timer)
		blame("the alarm is set while it runs");
	alarm_set = timer;
	alarm_at = deadline;
}

static void ring(void)
{
	uint32_t timer = alarm_set;

	if (timer && alarm_at <= now) {
		alarm_set = 0;
		call(CALL_ALARM, 0, 0, timer, NULL, 0);
	}
}

/* ---- another task: one of the two runs ---- */

static const char *mode_to_set;
static bool has_second, second_waits, is_second;
static unsigned locked;

static struct {
	uint32_t place;
	unsigned owner; /* 0: free; 1 or 2 */
} mutexes[MUTEXES];

/* Until it ends, or waits for a mutex. */
static void run_second(uint32_t what, const char *mode)
{
	is_second = true;
	second_waits = false;
	call(what, 0, 0, 0, mode, strlen(mode) + 1);
	is_second = false;
	has_second = second_waits;
}

void kernel_switch(const char *mode)
{
	mode_to_set = mode;
}

static void begin_second(void)
{
	const char *mode = mode_to_set;

	if (!mode || has_second || drives_next() == UINT64_MAX)
		return;
	mode_to_set = NULL;
	has_second = true;
	run_second(CALL_OTHER, mode);
}

static unsigned *owner_of(uint32_t place)
{
	unsigned i = 0;

	while (i < MUTEXES && mutexes[i].place && mutexes[i].place != place)
		i++;
	if (i == MUTEXES)
		stop("it has too many mutexes");
	mutexes[i].place = place;
	return &mutexes[i].owner;
}

/* The second task waits; the first one would do so for ever. */
static bool lock(uint32_t place)
{
	unsigned *owner = owner_of(place), me = is_second ? 2 : 1;

	if (*owner == me)
		blame("the channel is locked twice");
	else if (*owner && is_second) {
		second_waits = true;
		return false;
	}
	*owner = me;
	locked++;
	return true;
}

static void unlock(uint32_t place)
{
	unsigned *owner = owner_of(place);

	if (!*owner)
		blame("the channel is unlocked by nobody");
	*owner = 0;
	locked--;
	if (!is_second && second_waits)
		run_second(CALL_GO_ON, "");
}

/* ---- sleep ---- */

/* The time goes to what comes next. */
static void go_on(void)
{
	uint64_t next = drives_next();

	if (alarm_set && alarm_at < next)
		next = alarm_at;
	if (next == UINT64_MAX)
		stop("it sleeps, and nothing will wake it");
	pass(next > now ? next - now : 1);
}

static void sleep_at(uint32_t queue)
{
	sleeps++;
	if (is_enabled) {
		blame("it sleeps with interrupts enabled");
		deliver();
	}
	woken = 0;
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

/* ---- questions ---- */

static void use_port(const struct message *question)
{
	uint32_t size = question->second >> 16, count = question->second & 0xffff, value = 0;
	uint16_t port = question->first;
	bool is_in = question->what == ASK_IN;
	uint8_t *bytes = calloc(count + 1, 4);

	if (size == 0 || size > 4 || question->bytes != (is_in ? 0 : size * count))
		stop("it uses a port as no processor does");
	receive(bytes, question->bytes);
	if (!is_in && question->value)
		blame("COMMAND is written while is_answered is true");
	if (!is_in && has_started && !locked)
		blame("a task writes to a port, and has not taken the channel");
	for (uint32_t i = 0; i < count; i++) {
		value = 0;
		if (is_in)
			value = port_in(port, size);
		else
			memcpy(&value, bytes + i * size, size);
		if (is_in)
			memcpy(bytes + i * size, &value, size);
		else
			port_out(port, size, value);
	}
	if (is_in && port % 8 == 7 && (value & BSY) && waits_at_status && !is_in_handler) {
		waits_at_status = false;
		pass(drives_next() - now);
	}
	pass(0);
	deliver();
	reply(0, bytes, is_in ? size * count : 0);
	free(bytes);
}

/* A line of its own, whatever is in it. */
static void say(uint32_t count)
{
	char text[513] = "";

	if (count > 512)
		stop("it says too much at once");
	receive(text, count);
	for (char *at = text; *at; at++)
		if (*at == '\n' && at[1])
			*at = ' ';
	printf("> %s%s", text, strchr(text, '\n') ? "" : "\n");
}

/* The drive's answer may come just before. */
static void enable(bool enabled)
{
	if (!enabled && waits_at_cli && drives_next() != UINT64_MAX) {
		waits_at_cli = false;
		pass(drives_next() - now);
		deliver();
	}
	is_enabled = enabled;
	deliver();
}

static void cancel(uint32_t timer)
{
	if (alarm_set == timer)
		alarm_set = 0;
}

/* Does what most questions ask for. Returns the answer. */
static uint64_t result_of(const struct message *question)
{
	uint32_t first = question->first;

	switch (question->what) {
	case ASK_CLI:
	case ASK_STI:
		enable(question->what == ASK_STI);
		return 0;
	case ASK_MSLEEP:
		pass(question->value * 1000000ull);
		deliver();
		return 0;
	case ASK_HANDLER:
		has_handler[first % 16] = true;
		return 0;
	case ASK_ALARM:
		set_alarm(first, question->value);
		return 0;
	case ASK_CANCEL:
		cancel(first);
		return 0;
	case ASK_WAKE:
		woken = first;
		return 0;
	case ASK_SLEEP:
		sleep_at(first);
		return 0;
	case ASK_LOCK:
		return lock(first);
	case ASK_UNLOCK:
		unlock(first);
		return 0;
	case ASK_DRIVE:
		is_there[first % 4] = true;
		return 0;
	}
	stop(question->what == ASK_CRASH ? "it crashes" : "it asks what no driver asks");
	return 0;
}

static void answer(const struct message *question)
{
	static uint32_t last;
	bool is_again = last == question->what;

	last = question->what;
	if (question->what == ASK_IN || question->what == ASK_OUT) {
		use_port(question);
	} else if (question->what == ASK_TIME) {
		look(is_again);
		deliver();
		reply(now, NULL, 0);
	} else if (question->what == ASK_SAY) {
		say(question->bytes);
		pass(SAY_NS);
		reply(0, NULL, 0);
	} else {
		reply(result_of(question), NULL, 0);
	}
}

void kernel_check(void)
{
	if (alarm_set)
		blame("the alarm stays set");
	alarm_set = 0;
	for (unsigned i = 0; i < CHANNELS; i++)
		if (channels_of_model[i].master_command & 1)
			blame("the bus master is not stopped at the end");
	if (locked || has_second)
		blame("the channel stays locked");
	locked = 0;
}
