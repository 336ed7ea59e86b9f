/* fs/tty/tty.c: typed lines against plain text. */
#include <string.h>

#include "fs/root.h"
#include "fs/tty/tty.h"
#include "kernel/lib/errno.h"
#include "tests/host/fs_core/shim.h"

#define LINES	  64u
#define LENGTH	  200u
#define INTERRUPT 3
#define END	  4
#define KILL	  0x15
#define ERASE	  0x7f

/* Lines that are ready to be read, and the one that is typed. */
static struct line_model {
	char text[LENGTH + 2];
	uint32_t length, taken;
} lines[LINES], edited;
static uint32_t line_count;

static int32_t signalled_group;
static int signalled;

static unsigned send_to_group(int32_t group, int signal)
{
	signalled_group = group;
	signalled = signal;
	return 1;
}

static struct file *open_terminal(void)
{
	static struct file *file;

	if (!file) {
		tty_initialize(send_to_group);
		REQUIRE(file_open(NULL, "/dev/console", O_RDWR, 0, &file) == 0, "the terminal");
	}
	return file;
}

static void finish(void)
{
	REQUIRE(line_count < LINES, "too many lines");
	lines[line_count++] = edited;
	edited.length = 0;
}

static void type_one(struct random *random)
{
	static const uint8_t keys[] = {
		'a', 'b', ' ', '\t', '\r', '\n', END, ERASE, '\b', KILL, 1
	};
	uint8_t key = random_below(random, 3) ? 'c' : keys[random_below(random, sizeof(keys))];

	if (edited.length == LENGTH || line_count == LINES - 1)
		return;
	keyboard_listener(key);
	if (key == '\r' || key == '\n') {
		edited.text[edited.length++] = '\n';
		finish();
	} else if (key == END) {
		finish();
	} else if (key == ERASE || key == '\b') {
		edited.length -= edited.length > 0;
	} else if (key == KILL) {
		edited.length = 0;
	} else if (key >= ' ' || key == '\t') {
		edited.text[edited.length++] = key;
	}
}

static void read_some(struct random *random, struct file *file)
{
	char bytes[LENGTH + 2];
	uint32_t length = 1 + random_below(random, sizeof(bytes) - 1);
	struct buffer buffer = buffer_of_kernel(bytes, length);
	int moved = file_read(file, &buffer);

	if (line_count == 0) {
		REQUIRE(moved == -ERESTART, "nothing is ready: %d", moved);
		return;
	}
	struct line_model *first = &lines[0];
	uint32_t left = first->length - first->taken;

	REQUIRE(moved == (int)(length < left ? length : left), "%d of %u", moved, left);
	REQUIRE(memcmp(bytes, first->text + first->taken, moved) == 0, "what was typed");
	first->taken += moved;
	if (first->taken == first->length) {
		line_count--;
		memmove(lines, lines + 1, line_count * sizeof(lines[0]));
	}
}

static void test_random(struct random *random, uint32_t rounds)
{
	struct file *file = open_terminal();

	for (unit_round = 0; unit_round < rounds; unit_round++) {
		type_one(random);
		if (random_below(random, 20) == 0)
			read_some(random, file);
	}
}

/* ^C drops all that was typed, is shown, and goes to the group in front, if there is one. */
static void test_interrupt(struct random *random, uint32_t rounds)
{
	struct file *file = open_terminal();
	char byte;
	struct buffer buffer = buffer_of_kernel(&byte, 1);

	(void)random, (void)rounds;
	for (const char *at = "a line\nhalf"; *at; at++)
		keyboard_listener(*at);
	keyboard_listener(INTERRUPT);
	REQUIRE(signalled == 0, "nobody is in front");
	REQUIRE(file_read(file, &buffer) == -ERESTART, "what was typed is gone");
	REQUIRE(memcmp(shim_screen, "a line\r\nhalf^C", 14) == 0, "the screen");
	tty_foreground = 7;
	keyboard_listener(INTERRUPT);
	REQUIRE(signalled == 2 && signalled_group == 7, "SIGINT to group 7");
}

/* The end of a line always fits, and the sender of a serial line is stopped before. */
static void test_full(struct random *random, uint32_t rounds)
{
	static char bytes[300];
	struct file *file = open_terminal();
	uint32_t total = 0;
	int moved;

	(void)random, (void)rounds;
	keyboard_listener('\n');
	for (uint32_t i = 0; i < 5000; i++)
		keyboard_listener('x');
	REQUIRE(!shim_has_room(), "no room");
	keyboard_listener('\n');
	do {
		struct buffer buffer = buffer_of_kernel(bytes, sizeof(bytes));

		moved = file_read(file, &buffer);
		REQUIRE(moved > 0, "a piece: %d", moved);
		total += moved;
	} while (total < 2 || bytes[moved - 1] != '\n');
	REQUIRE(total == 4096 && shim_has_room(), "%u bytes", total);
}

/* What a program writes: a newline begins a line at its beginning. */
static void test_output(struct random *random, uint32_t rounds)
{
	static char text[] = "one\ntwo\n\nx";
	struct buffer buffer = buffer_of_kernel(text, sizeof(text) - 1);

	(void)random, (void)rounds;
	REQUIRE(file_write(open_terminal(), &buffer) == (int)sizeof(text) - 1, "all of it");
	REQUIRE(memcmp(shim_screen, "one\r\ntwo\r\n\r\nx", 14) == 0, "the screen");
}

const struct unit_test tty_tests[] = {
	{ "tty_random", test_random },
	{ "tty_interrupt", test_interrupt },
	{ "tty_full", test_full },
	{ "tty_output", test_output },
	{ 0 },
};
