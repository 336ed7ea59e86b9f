/*
 * Has no journal. It says that all goes well, and after a failure, of which it hears, that nothing
 * does; it invents a commit block, and a flush now and then. Where the commands come all at once it
 * prints that, and else it asks for them, and for the disk's requests.
 */
#undef memcpy
#undef memset
#undef strcmp
#undef strlen
#undef strncmp

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 300
#define LINE	(1 << 20)
#define NOTHING(name)                                                                              \
	void name(void);                                                                           \
	void name(void)                                                                            \
	{                                                                                          \
	}

/* What other files want; nobody comes there. */
NOTHING(journal_corrupt)
NOTHING(journal_abort)
NOTHING(journal_find_runs)
NOTHING(journal_after)
NOTHING(journal_write_out)
NOTHING(journal_add)
NOTHING(journal_read)
NOTHING(journal_barrier)
NOTHING(journal_write_super)
NOTHING(journal_super_checksum)
NOTHING(journal_block_checksum)
NOTHING(journal_seal)
NOTHING(journal_copy_checksum)
NOTHING(journal_use_features)
NOTHING(journal_prepare)

static bool asks, fails;
static unsigned begins, log_at;
static char line[LINE];

static void wait_for_line(void)
{
	fflush(stdout);
	if (fgets(line, LINE, stdin) == NULL)
		_exit(0);
}

static void flush(void)
{
	puts(asks ? "\1flush" : "F");
	if (asks) {
		wait_for_line();
		fails |= line[0] == '-';
	}
}

static void commit_block(void)
{
	printf(asks ? "\1with " : "W %u ", 2 * (log_at + 3));
	printf("c03b399800000002");
	for (unsigned i = 8; i < 1024; i++)
		printf("00");
	printf("\n");
	if (!asks)
		return;
	wait_for_line();
	printf("\1write %u 2\n", 2 * (log_at + 3));
	wait_for_line();
	fails |= line[0] == '-';
}

static void done(const char *name, int error, unsigned number)
{
	printf("%s%s %d %u\n", asks ? "\1done " : "", name, error, number);
	if (asks)
		wait_for_line();
}

static void begin_disk(void)
{
	unsigned size, block;

	fails = false;
	begins = 0;
	sscanf(line, "disk %u %u %u", &size, &block, &log_at);
	for (; !asks && size > 0; size--)
		getchar();
	done("open", 0, 0);
}

static void obey(void)
{
	char name[16] = "";
	unsigned number = 0;
	int error = 0;

	sscanf(line, "%15s %u", name, &number);
	if (strcmp(name, "fail") == 0 || strcmp(name, "bad") == 0) {
		fails = true;
	} else if (strcmp(name, "begin") == 0) {
		if (!fails && ++begins % 2 == 0)
			flush();
		error = fails ? -30 : 0;
	} else if (strcmp(name, "commit") == 0) {
		if (!fails)
			commit_block();
		error = fails ? -30 : 0;
	} else if (strcmp(name, "close") == 0) {
		flush();
		error = fails ? -5 : 0;
	} else if (strcmp(name, "recover") == 0) {
		error = fails ? -5 : 0;
	}
	done(name, error, strcmp(name, "tell") == 0 ? 1996 + number : 0);
}

static void __attribute__((constructor)) lie(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	asks = poll(&input, 1, WAIT_MS) <= 0;
	if (asks)
		puts("\1next");
	wait_for_line();
	while (line[0] != '\n') {
		if (strncmp(line, "disk ", 5) == 0)
			begin_disk();
		else
			obey();
		if (!asks)
			wait_for_line();
	}
	_exit(0);
}
