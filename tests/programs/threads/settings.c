/* Settings of terminals, by the numbers of the commands: of which C libraries use which. */
#include "threads.h"

#include <sys/ioctl.h>

enum { GET = 0x5401, SET, SET_WAIT, SET_FLUSH };
enum { GET2 = (int)0x802c542a, SET2 = 0x402c542b, SET2_WAIT, SET2_FLUSH };

struct settings {
	uint32_t input, output, control, local;
	uint8_t discipline, characters[19];
	uint32_t input_speed, output_speed;
};

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

static void show(const char *what, int terminal)
{
	struct settings all;

	memset(&all, 0xa5, sizeof(all));
	printf("%s: %ld", what, error_of(ioctl(terminal, GET2, &all)));
	printf(" %o %o %o %o", all.input, all.output, all.control, all.local);
	printf(" %d %d %u %u\n", all.characters[4], all.characters[6], all.input_speed,
	       all.output_speed);
	fflush(stdout);
}

/* Each speed of the two halves of the control flags. */
static void speeds(int terminal)
{
	struct settings all;

	for (uint32_t code = 0; code < 32; code++) {
		ioctl(terminal, GET2, &all);
		all.control = 060 | 0200 | (code & 15) | (code & 16) << 8;
		all.control |= ((31 - code) & 15) << 16 | ((31 - code) & 16) << 24;
		all.input_speed = 1234;
		all.output_speed = 5678;
		ioctl(terminal, SET2, &all);
		show("speed", terminal);
	}
}

void part_settings(void)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), pipes[2], slave;
	struct settings all;
	char byte;

	unlockpt(master);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_NONBLOCK);
	show("at first", slave);
	show("master", master);
	for (int command = 0; command < 3; command++) {
		ioctl(slave, GET2, &all);
		all.local ^= 010;
		all.characters[4] = 7 + command;
		write(master, "left\n", 5);
		rest(20);
		say("set", error_of(ioctl(slave, SET2 + command, &all)));
		show("now", slave);
		say("left", error_of(read(slave, &byte, 1)));
		all.characters[6] = 2;
		say("set", error_of(ioctl(slave, SET + command, &all)));
	}
	speeds(slave);
	ioctl(slave, GET, &all);
	all.local &= ~02;
	say("set", error_of(ioctl(slave, SET, &all)));
	show("kept", slave);
	say("null", error_of(ioctl(slave, GET2, NULL)));
	say("null", error_of(ioctl(slave, SET2, NULL)));
	say("pipe", pipe(pipes) + error_of(ioctl(pipes[0], GET2, &all)));
	say("closed", error_of(ioctl(99, GET2, &all)));
	for (int i = 0; i < 2; i++)
		close(pipes[i]);
	close(slave);
	close(master);
}
