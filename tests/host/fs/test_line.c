/* fs/tty/line.c: what is typed, what the screen gets, what a program reads. */
#include <stdio.h>
#include <string.h>

#include "fs/linux/line.h"
#include "kernel/abi/signal.h"
#include "tests/host/fs/shim.h"

#define TEXT 20000u

static struct line line;
static char screen[TEXT];
static uint32_t screen_length;
static int last_signal;

static void put(struct line *unused, const char *text, uint32_t length)
{
	REQUIRE(screen_length + length < TEXT, "too much for the screen");
	memcpy(screen + screen_length, text, length);
	screen_length += length;
	screen[screen_length] = '\0';
}

static void take_signal(struct line *unused, int signal)
{
	last_signal = signal;
}

static void begin(void)
{
	line_initialize(&line, &tty_ring, put, take_signal);
	screen_length = last_signal = 0;
	screen[0] = '\0';
}

static void type(const char *text)
{
	while (*text)
		line_type(&line, *text++);
}

/* Reads all that can be read, `size` bytes at a time, and puts a | behind each end of a line. */
static const char *read_all(uint32_t size)
{
	static char text[TEXT];
	uint32_t length = 0;
	bool is_end;

	while (line_available(&line) > 0) {
		uint32_t count = line_take(&line, text + length, size, &is_end);

		REQUIRE(count > 0 || is_end, "something is available, and nothing is read");
		length += count;
		if (is_end)
			text[length++] = '|';
	}
	text[length] = '\0';
	return text;
}

/* Changes of the settings. */
struct change {
	uint32_t input_off, output_off, local_off, local_on;
};

static void change(const struct change *change)
{
	struct linux_termios2 settings = line.all;

	settings.settings.input &= ~change->input_off;
	settings.settings.output &= ~change->output_off;
	settings.settings.local &= ~change->local_off;
	settings.settings.local |= change->local_on;
	line_set(&line, &settings, false);
}

#define RUB	"\b \b"
#define NOTHING { 0, 0, 0, 0 }
#define RAW	{ ICRNL, OPOST, ICANON | ISIG | ECHO | IEXTEN, 0 }
#define EACH	99u

static const struct {
	const char *typed, *shown, *read;
	uint32_t size; /* of a read */
	int signal;
	struct change change;
} cases[] = {
	{ "hello\r", "hello\r\n", "hello\n|", EACH, 0, NOTHING },
	{ "a\nb\n", "a\r\nb\r\n", "a\n|b\n|", EACH, 0, NOTHING },
	{ "not yet", "not yet", "", EACH, 0, NOTHING },
	{ "hello\n", "hello\r\n", "hello\n|", 3, 0, NOTHING },
	{ "abx\x7f"
	  "c\n",
	  "abx" RUB "c\r\n", "abc\n|", EACH, 0, NOTHING },
	{ "\x7f\x7f\n", "\r\n", "\n|", EACH, 0, NOTHING },
	{ "a\n\x7f\n", "a\r\n\r\n", "a\n|\n|", EACH, 0, NOTHING },
	{ "abc\x15"
	  "d\n",
	  "abc" RUB RUB RUB "d\r\n", "d\n|", EACH, 0, NOTHING },
	{ "one two\x17x\n", "one two" RUB RUB RUB "x\r\n", "one x\n|", EACH, 0, NOTHING },
	{ "one  \x17\n", "one  " RUB RUB RUB RUB RUB "\r\n", "\n|", EACH, 0, NOTHING },
	{ "\x01\x7f\n", "^A" RUB RUB "\r\n", "\n|", EACH, 0, NOTHING },
	{ "\xc3\xa9\x7f\n", "\xc3\xa9" RUB "\r\n", "\n|", EACH, 0, NOTHING },
	{ "\xe2\x82\xac"
	  "a\x17\n",
	  "\xe2\x82\xac"
	  "a" RUB RUB "\r\n",
	  "\n|", EACH, 0, NOTHING },
	{ "ab\x12\n", "ab^R\r\nab\r\n", "ab\n|", EACH, 0, NOTHING },
	{ "\x04", "", "|", EACH, 0, NOTHING },
	{ "ab\x04", "ab", "ab|", EACH, 0, NOTHING },
	{ "ab\x04", "ab", "ab|", 2, 0, NOTHING },
	{ "ab\x04\x04", "ab", "ab||", 2, 0, NOTHING },
	{ "ab\x03"
	  "cd\n",
	  "ab^Ccd\r\n", "cd\n|", EACH, SIGINT, NOTHING },
	{ "done\nab\x03", "done\r\nab^C", "", EACH, SIGINT, NOTHING },
	{ "\x1a", "^Z", "", EACH, SIGTSTP, NOTHING },
	{ "\x1c", "^\\", "", EACH, SIGQUIT, NOTHING },
	{ "ab\x03"
	  "c\n",
	  "ab^Cc\r\n",
	  "abc\n|",
	  EACH,
	  SIGINT,
	  { 0, 0, 0, NOFLSH } },
	{ "a\x03\n", "a^C\r\n", "a\x03\n|", EACH, 0, { 0, 0, ISIG, 0 } },
	{ "\x16\x03\n", "^C\r\n", "\x03\n|", EACH, 0, NOTHING },
	{ "\x16\x7f\n", "^?\r\n", "\x7f\n|", EACH, 0, NOTHING },
	{ "\x16\n\n", "\r\n\r\n", "\n\n|", EACH, 0, NOTHING },
	{ "secret\n", "", "secret\n|", EACH, 0, { 0, 0, ECHO, 0 } },
	{ "secret\n", "\r\n", "secret\n|", EACH, 0, { 0, 0, ECHO, ECHONL } },
	{ "x\n", "x\n", "x\n|", EACH, 0, { 0, ONLCR, 0, 0 } },
	{ "x\r", "x^M", "", EACH, 0, { ICRNL, 0, 0, 0 } },
	{ "a\x03\x7f\r\x04", "", "a\x03\x7f\r\x04|", EACH, 0, RAW },
	{ "abc", "", "abc|", 2, 0, RAW },
	{ "a\x7f\x04", "a^?^D", "a\x7f\x04|", EACH, 0, { 0, 0, ICANON, 0 } },
	{ "a\x03"
	  "b",
	  "a^Cb",
	  "b|",
	  EACH,
	  SIGINT,
	  { 0, 0, ICANON, 0 } },
};

static void test_table(struct random *random, uint32_t rounds)
{
	(void)random, (void)rounds;
	for (unit_round = 0; unit_round < sizeof(cases) / sizeof(cases[0]); unit_round++) {
		begin();
		change(&cases[unit_round].change);
		type(cases[unit_round].typed);
		REQUIRE(strcmp(screen, cases[unit_round].shown) == 0, "the screen has \"%s\"",
			screen);
		const char *read = read_all(cases[unit_round].size);

		REQUIRE(strcmp(read, cases[unit_round].read) == 0, "read: \"%s\"", read);
		REQUIRE(last_signal == cases[unit_round].signal, "signal %d", last_signal);
	}
}

/* A line that is too long keeps its end; the ring wraps; who sends is told to wait. */
static void test_full(struct random *random, uint32_t rounds)
{
	(void)random, (void)rounds;
	begin();
	for (uint32_t i = 0; i < TTY_CELLS + 500; i++) {
		REQUIRE(line_has_room(&line), "a long line that nobody can read stops the keys");
		line_type(&line, 'x');
	}
	line_type(&line, '\n');
	REQUIRE(!line_has_room(&line), "a full line that can be read, and room");
	REQUIRE(strlen(read_all(100)) == TTY_CELLS + 1, "%zu bytes", strlen(read_all(100)));
	REQUIRE(line_has_room(&line), "an empty line without room");
	for (unit_round = 0; unit_round < 3000; unit_round++) {
		type("wrap\n");
		REQUIRE(strcmp(read_all(100), "wrap\n|") == 0, "the ring");
		screen_length = 0;
	}
}

/* What was typed before the settings change is neither lost nor read as it was not. */
static void test_change(struct random *random, uint32_t rounds)
{
	struct change raw = RAW, canonical = { 0, 0, 0, ICANON };
	struct linux_termios2 settings;

	(void)random, (void)rounds;
	begin();
	type("half");
	change(&raw);
	REQUIRE(strcmp(read_all(100), "half|") == 0, "half a line, raw");
	type("more");
	change(&canonical);
	REQUIRE(line_available(&line) == 4, "raw bytes, canonical");
	settings = line.all;
	line_set(&line, &settings, true);
	REQUIRE(line_available(&line) == 0, "flushed");
}

/* Output, and only that of programs, is mapped as the settings say. */
static void test_output(struct random *random, uint32_t rounds)
{
	struct change off = { 0, OPOST, 0, 0 };

	(void)random, (void)rounds;
	begin();
	line_output(&line, "\na\n\nb", 5);
	REQUIRE(strcmp(screen, "\r\na\r\n\r\nb") == 0, "\"%s\"", screen);
	screen_length = 0;
	change(&off);
	line_output(&line, "a\nb", 3);
	REQUIRE(strcmp(screen, "a\nb") == 0, "\"%s\"", screen);
}

/* Any bytes with any settings: no more comes out than went in, and counts stay in their order. */
static void test_random(struct random *random, uint32_t rounds)
{
	uint32_t typed = 0, read = 0;

	begin();
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		struct linux_termios2 settings = line.all;
		char bytes[64];
		bool is_end;

		for (uint64_t count = random_below(random, 40); count > 0; count--, typed++)
			line_type(&line, random_below(random, 2) ? random_below(random, 33)
								 : random_next(random));
		read += line_take(&line, bytes, random_below(random, 64), &is_end);
		REQUIRE(read <= typed, "%u of %u bytes", read, typed);
		REQUIRE(tty_ring.ready - tty_ring.taken <= tty_ring.typed - tty_ring.taken &&
			    tty_ring.typed - tty_ring.taken <= TTY_CELLS,
			"taken %u, ready %u, typed %u", tty_ring.taken, tty_ring.ready,
			tty_ring.typed);
		screen_length = 0;
		if (random_below(random, 50))
			continue;
		settings.settings.local = random_next(random);
		settings.settings.input = random_next(random);
		settings.settings.output = random_next(random);
		line_set(&line, &settings, random_below(random, 2));
	}
}

const struct unit_test line_tests[] = {
	{ "line_table", test_table },	{ "line_full", test_full },
	{ "line_change", test_change }, { "line_output", test_output },
	{ "line_random", test_random }, { 0 },
};
