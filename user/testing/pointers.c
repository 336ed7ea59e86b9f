/*
 * pointers [SEED]: every call of Linux's that takes a pointer and looks at what is there, once for
 * each such pointer, which leads into the kernel, and into nothing. All must give EFAULT. Prints a
 * line for each (KTAP): its number, and which argument was bad.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/testing/places.h"

#define SCRATCH "/tmp/pointers"
#define LENGTH	64

/*
 * Letters for arguments: ! the bad pointer; g a good one, to zeros; s a path that is there, n one
 * that is not, l a symbolic link's, p this program's; f a file, o another, d a directory, t a
 * timer; A AT_FDCWD; i the process itself, z a child that ends; u a signal; e waitid's option for
 * ends; L a length; r where such a length is; x that of struct statfs64; c what capget begins with;
 * S a socket from which can be read; E an epoll file that watches it; digits themselves.
 */
static const struct {
	short number;
	const char *arguments;
} calls[] = {
	{ 3, "f!L" },	   { 4, "f!L" },      { 5, "!00" },	 { 7, "z!0" },
	{ 8, "!0" },	   { 9, "!n" },	      { 9, "s!" },	 { 10, "!" },
	{ 11, "!00" },	   { 11, "p!0" },     { 11, "p0!" },	 { 12, "!" },
	{ 13, "!" },	   { 14, "!00" },     { 15, "!0" },	 { 16, "!00" },
	{ 30, "!g" },	   { 30, "s!" },      { 33, "!0" },	 { 38, "!n" },
	{ 38, "s!" },	   { 39, "!0" },      { 40, "!" },	 { 42, "!" },
	{ 43, "!" },	   { 67, "u!0" },     { 67, "u0!" },	 { 73, "!" },
	{ 74, "!L" },	   { 75, "7!" },      { 76, "7!" },	 { 77, "0!" },
	{ 78, "!0" },	   { 78, "0!" },      { 81, "1!" },	 { 83, "!n" },
	{ 83, "s!" },	   { 85, "!gL" },     { 85, "l!L" },	 { 90, "!" },
	{ 92, "!0" },	   { 102, "8!" },     { 104, "0!0" },	 { 104, "00!" },
	{ 105, "0!" },	   { 106, "!g" },     { 106, "s!" },	 { 107, "!g" },
	{ 107, "s!" },	   { 108, "f!" },     { 114, "z!00" },	 { 114, "z00!" },
	{ 116, "!" },	   { 122, "!" },      { 126, "0!0" },	 { 126, "00!" },
	{ 140, "f00!0" },  { 142, "1!000" },  { 142, "10!00" },	 { 142, "100!0" },
	{ 142, "1000!" },  { 145, "f!1" },    { 146, "f!1" },	 { 155, "0!" },
	{ 156, "00!" },	   { 161, "0!" },     { 423, "0!" },	 { 162, "!0" },
	{ 168, "!10" },	   { 174, "u!08" },   { 174, "u0!8" },	 { 175, "0!08" },
	{ 175, "00!8" },   { 176, "!8" },     { 177, "!008" },	 { 177, "g0!8" },
	{ 178, "iu!" },	   { 179, "!8" },     { 180, "f!L00" },	 { 181, "f!L00" },
	{ 182, "!00" },	   { 183, "!L" },     { 186, "!0" },	 { 186, "0!" },
	{ 187, "of!L" },   { 191, "7!" },     { 193, "!00" },	 { 195, "!g" },
	{ 195, "s!" },	   { 196, "!g" },     { 196, "s!" },	 { 197, "f!" },
	{ 198, "!00" },	   { 206, "1!" },     { 209, "!gg" },	 { 209, "g!g" },
	{ 209, "gg!" },	   { 211, "!gg" },    { 211, "g!g" },	 { 211, "gg!" },
	{ 212, "!00" },	   { 220, "d!L" },    { 226, "!s000" },	 { 226, "s!000" },
	{ 227, "!s000" },  { 227, "s!000" },  { 228, "f!000" },	 { 229, "!s00" },
	{ 229, "s!00" },   { 230, "!s00" },   { 230, "s!00" },	 { 231, "f!00" },
	{ 232, "!00" },	   { 233, "!00" },    { 235, "!s" },	 { 235, "s!" },
	{ 236, "!s" },	   { 236, "s!" },     { 237, "f!" },	 { 239, "of!L" },
	{ 240, "!00000" }, { 240, "g00!00" }, { 241, "0L!" },	 { 242, "0L!" },
	{ 243, "!" },	   { 265, "1!" },     { 266, "1!" },	 { 267, "10!0" },
	{ 25, "!" },	   { 79, "!0" },      { 79, "0!" },	 { 264, "0!" },
	{ 404, "0!" },	   { 268, "!xg" },    { 268, "sx!" },	 { 269, "fx!" },
	{ 271, "!g" },	   { 271, "s!" },     { 284, "1z!e0" },	 { 284, "1zge!" },
	{ 295, "A!00" },   { 296, "A!0" },    { 297, "A!00" },	 { 298, "A!000" },
	{ 300, "A!g0" },   { 300, "As!0" },   { 301, "A!0" },	 { 302, "A!An" },
	{ 302, "AsA!" },   { 303, "A!An0" },  { 303, "AsA!0" },	 { 304, "!An" },
	{ 304, "sA!" },	   { 305, "A!gL" },   { 305, "Al!L" },	 { 306, "A!0" },
	{ 307, "A!0" },	   { 308, "1!0000" }, { 308, "10!000" }, { 308, "100!00" },
	{ 308, "1000!0" }, { 308, "10000!" }, { 309, "!1g08" },	 { 309, "g1!08" },
	{ 309, "g1g!8" },  { 320, "A!g0" },   { 320, "As!0" },	 { 331, "!0" },
	{ 299, "A!0" },	   { 299, "As!" },    { 326, "t!" },	 { 410, "t!" },
	{ 412, "A!g0" },   { 412, "As!0" },   { 413, "1!0000" }, { 413, "10!000" },
	{ 413, "100!00" }, { 413, "1000!0" }, { 413, "10000!" }, { 414, "!1g08" },
	{ 414, "g1!08" },  { 414, "g1g!8" },  { 325, "t0!0" },	 { 325, "t0g!" },
	{ 411, "t0!0" },   { 411, "t0g!" },   { 360, "110!" },	 { 333, "f!100" },
	{ 334, "f!100" },  { 340, "07!0" },   { 340, "070!" },	 { 353, "A!An0" },
	{ 353, "AsA!0" },  { 355, "!L0" },    { 383, "A!00g" },	 { 383, "As00!" },
	{ 403, "1!" },	   { 406, "1!" },     { 407, "10!0" },	 { 421, "!008" },
	{ 421, "g0!8" },   { 422, "!00000" }, { 422, "g00!00" }, { 439, "A!00" },
	{ 154, "0!" },	   { 184, "!g" },     { 184, "c!" },	 { 185, "!g" },
	{ 185, "c!" },	   { 318, "!00" },    { 318, "0!0" },	 { 365, "S13!r" },
	{ 365, "S13g!" },  { 367, "S!r" },    { 367, "Sg!" },	 { 368, "S!r" },
	{ 368, "Sg!" },	   { 369, "S!L000" }, { 370, "S!0" },	 { 371, "S!L000" },
	{ 371, "SgL0g!" }, { 372, "S!0" },    { 255, "E1f!" },	 { 255, "E3S!" },
	{ 256, "E!10" },   { 319, "E!100" },  { 319, "Eg10!8" }, { 361, "S!3" },
	{ 362, "S!3" },	   { 366, "S12!4" },
};

#define COUNT (sizeof(calls) / sizeof(calls[0]))

static struct random numbers;
static int file, output, directory, timer, sockets[2], epoll;
static uint64_t zeros[LENGTH];
static const uint32_t events[3] = { 1 };		  /* of epoll: to be read */
static uint32_t length, capabilities[2] = { 0x20080522 }; /* version 3, of this process */

/* A child that has ended, or will. */
static uint32_t child(void)
{
	int pid = fork();

	if (pid == 0)
		_exit(0);
	return pid;
}

static uint32_t argument(char letter, uint32_t bad)
{
	switch (letter) {
	case '!':
		return bad;
	case 'g':
		return (uint32_t)memset(zeros, 0, sizeof(zeros));
	case 's':
		return (uint32_t)SCRATCH;
	case 'n':
		return (uint32_t)SCRATCH ".new";
	case 'l':
		return (uint32_t)SCRATCH ".link";
	case 'p':
		return getauxval(AT_EXECFN);
	case 'f':
		return file;
	case 'o':
		return output;
	case 't':
		return timer;
	case 'd':
		return directory;
	case 'A':
		return AT_FDCWD;
	case 'i':
		return getpid();
	case 'z':
		return child();
	case 'u':
		return SIGUSR1;
	case 'e':
		return 4;
	case 'L':
		return LENGTH;
	case 'r':
		length = LENGTH;
		return (uint32_t)&length;
	case 'x':
		return 84;
	case 'c':
		return (uint32_t)capabilities;
	case 'S':
		return sockets[0];
	case 'E':
		return epoll;
	default:
		return letter - '0';
	}
}

/* The call's result, or a negated error number. */
static long call(unsigned index, enum place place)
{
	uint32_t bad = place_address(place, &numbers) & -8u, a[6] = { 0 };
	const char *letters = calls[index].arguments;

	for (unsigned i = 0; letters[i]; i++)
		a[i] = argument(letters[i], bad);
	long result = syscall(calls[index].number, a[0], a[1], a[2], a[3], a[4], a[5]);

	return result == -1 ? -errno : result;
}

static void prepare(void)
{
	timer = syscall(322, 1, 0, 0, 0, 0, 0); /* timerfd_create */
	output = open(SCRATCH ".out", O_RDWR | O_CREAT | O_TRUNC, 0600);
	file = open(SCRATCH, O_RDWR | O_CREAT | O_TRUNC, 0700);
	directory = open("/", O_RDONLY);
	syscall(360, 1, 1, 0, sockets, 0, 0); /* socketpair of AF_UNIX and SOCK_STREAM */
	epoll = syscall(329, 0, 0, 0, 0, 0, 0);
	syscall(255, epoll, 1, sockets[0], events, 0, 0);
	if (write(sockets[1], zeros, sizeof(zeros)) < 0 || output < 0 || file < 0 ||
	    directory < 0 || write(file, zeros, LENGTH) != LENGTH ||
	    symlink(SCRATCH, SCRATCH ".link") < 0) {
		perror("pointers: " SCRATCH);
		exit(1);
	}
}

/* Who may not set the host's name or the groups is refused before the pointer is looked at. */
static bool is_for_root(short number)
{
	return number == 74 || number == 81 || number == 206;
}

int main(int count, char **arguments)
{
	static const enum place places[] = { IN_KERNEL, IN_HOLE };
	unsigned failed = 0;

	numbers.state = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
	prepare();
	printf("KTAP version 1\n1..%u\n", 2 * (unsigned)COUNT);
	for (unsigned i = 0; i < 2 * COUNT; i++) {
		lseek(file, 0, SEEK_SET);
		lseek(directory, 0, SEEK_SET);
		long result = call(i / 2, places[i % 2]);
		const char *letters = calls[i / 2].arguments;
		bool ok =
		    result == -EFAULT || (result == -EPERM && is_for_root(calls[i / 2].number));

		failed += !ok;
		printf("%s %u call %d argument %d\n", ok ? "ok" : "not ok", i + 1,
		       calls[i / 2].number, (int)(strchr(letters, '!') - letters) + 1);
		if (!ok)
			printf("# %s gave %ld\n", letters, result);
		fflush(stdout);
	}
	unlink(SCRATCH);
	unlink(SCRATCH ".link");
	unlink(SCRATCH ".out");
	return failed > 0;
}
