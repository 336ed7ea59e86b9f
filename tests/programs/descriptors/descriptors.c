/*
 * descriptors FOLDER: each system call that takes a descriptor, while another thread closes it.
 *
 * calls.inc, which the test makes of the kernel's own table, has the calls and their arguments.
 * Each is made with ten kinds of open files. If it sleeps, the second thread closes the descriptor,
 * opens other files with the same number, and ends the sleep: by bytes, then by signals. Pointers
 * lead to a page of a file that is not in memory; a child keeps the disk's journal busy. So most
 * calls sleep.
 *
 * FOLDER is on a disk. It says which calls have slept, and what of another file came through a
 * pipe. It is small, and linked with no C library: the threads are two lines of assembly.
 */
#define CALLS_MOST 512u
#define COLD	   0x20000000u /* the address of a page that is not in memory */
#define HELD  0xdead0001u /* in a call's words: the descriptor that is closed, and another one */
#define OTHER 0xdead0002u
#define TRIES 400 /* until a call that still sleeps gets a signal */
#define TRIES_MOST 4000000

enum { FILE, FOLDER, READER, WRITER, SOCKET, LISTENER, EPOLL, TIMER, SIGNALS, EVENT, KINDS };

static const struct {
	unsigned address, length;
} vector = { COLD, 4096 };

#define VECTOR ((unsigned)&vector)

static const struct {
	unsigned number, words[6];
} calls[] = {
#include "calls.inc"
};

#define COUNT (sizeof(calls) / sizeof(calls[0]))

long call_words(unsigned number, const unsigned *words);
long thread_start(void *stack, void (*function)(void));

__asm__(".globl _start, call_words, thread_start\n"
	"_start: movl 8(%esp), %eax; pushl %eax; call run\n"
	"call_words: pushl %ebp; pushl %edi; pushl %esi; pushl %ebx\n"
	"movl 20(%esp), %eax; movl 24(%esp), %ebp\n"
	"movl (%ebp), %ebx; movl 4(%ebp), %ecx; movl 8(%ebp), %edx; movl 12(%ebp), %esi\n"
	"movl 16(%ebp), %edi; movl 20(%ebp), %ebp; int $0x80\n"
	"popl %ebx; popl %esi; popl %edi; popl %ebp; ret\n"
	/* CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM */
	"thread_start: pushl %ebx; movl 12(%esp), %edx; movl $120, %eax; movl $0x50f00, %ebx\n"
	"movl 8(%esp), %ecx; xorl %esi, %esi; xorl %edi, %edi; int $0x80\n"
	"testl %eax, %eax; jne 1f; call *%edx\n"
	"1: popl %ebx; ret\n"
	"restore: popl %eax; movl $119, %eax; int $0x80\n");

static long call(unsigned number, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e)
{
	const unsigned words[6] = { a, b, c, d, e, 0 };

	return call_words(number, words);
}

#define ADDRESS(x)	  ((unsigned)(x))
#define open(path, flags) call(5, ADDRESS(path), flags, 0600, 0, 0)
#define close(file)	  call(6, file, 0, 0, 0, 0)
#define yield()		  call(158, 0, 0, 0, 0, 0)
#define CREATE		  0102u /* O_CREAT | O_RDWR */
#define NONBLOCK	  04000u

static volatile unsigned asked, done, closed, quit;
static volatile int victim = -1, partner = -1;
static int first_task, process, other_file, other_pipe[2];
static unsigned char slept[CALLS_MOST];
static char bytes[65536], old[4096];
static unsigned strangers;

static void say(const char *text)
{
	unsigned length = 0;

	while (text[length])
		length++;
	call(4, 1, ADDRESS(text), length, 0, 0);
}

static void say_number(unsigned number)
{
	char text[12] = { 0 }, *at = text + 10;

	do
		*--at = '0' + number % 10;
	while (number /= 10);
	text[10] = ' ';
	say(at);
}

static void fill(char *to, char with, unsigned length)
{
	for (unsigned i = 0; i < length; i++)
		((volatile char *)to)[i] = with;
}

static void handle(int signal)
{
}

/* ---- the second thread ---- */

/* Ends a sleep: takes what a full pipe has, and gives something to who reads. */
static void feed(void)
{
	long got;

	if (partner < 0)
		return;
	while ((got = call(3, partner, ADDRESS(old), sizeof(old), 0, 0)) > 0)
		for (long i = 0; i < got; i++)
			strangers += old[i] == 'B';
	call(4, partner, ADDRESS("x"), 1, 0, 0);
}

static void close_and_reuse(void)
{
	close(victim);
	for (unsigned i = 0; i < 3; i++)
		call(323, 0, 0, 0, 0, 0);
	open("stranger", 2);
}

static void second(void)
{
	for (unsigned round = 1; !quit; round++) {
		unsigned tries = 0;

		while (asked != round && !quit)
			yield();
		slept[round % CALLS_MOST] = done != round;
		close_and_reuse();
		while (done != round && !quit && tries++ < TRIES_MOST) {
			feed();
			yield();
			if (tries > TRIES)
				call(270, process, first_task, 10, 0, 0);
		}
		if (tries >= TRIES_MOST) {
			say("stuck\n");
			call(252, 1, 0, 0, 0, 0);
		}
		closed = round;
	}
	for (;;)
		call(1, 0, 0, 0, 0, 0);
}

/* ---- the first ---- */

static const struct {
	unsigned short family;
	char path[8];
} name = { 1, "\0listen" };

static void make_pipe(int ends[2], unsigned flags)
{
	call(331, ADDRESS(ends), flags, 0, 0, 0);
}

static void fill_pipe(int writer)
{
	call(221, writer, 4, 1 | NONBLOCK, 0, 0);
	while (call(4, writer, ADDRESS(bytes), sizeof(bytes), 0, 0) > 0)
		;
	call(221, writer, 4, 1, 0, 0);
}

/* A new open file of this kind, of which there is one descriptor; `partner` is its other end. */
static void make_victim(unsigned kind)
{
	unsigned words[4] = { 0, 0, 100000, 0 };
	int ends[2] = { -1, -1 };

	if (kind == FILE) {
		ends[0] = open("file", CREATE);
		call(4, ends[0], ADDRESS(bytes), sizeof(bytes), 0, 0);
		call(19, ends[0], 0, 0, 0, 0);
		call(10, ADDRESS("file"), 0, 0, 0, 0);
	} else if (kind == FOLDER) {
		call(39, ADDRESS("folder"), 0700, 0, 0, 0);
		ends[0] = open("folder", 0);
		call(40, ADDRESS("folder"), 0, 0, 0, 0);
	} else if (kind == READER || kind == WRITER) {
		make_pipe(ends, 0);
		if (kind == WRITER) {
			int reader = ends[0];

			fill_pipe(ends[1]);
			ends[0] = ends[1];
			ends[1] = reader;
		}
	} else if (kind == SOCKET) {
		call(360, 1, 1, 0, ADDRESS(ends), 0);
		call(4, ends[1], ADDRESS(""), 0, 0, 0);
	} else if (kind == LISTENER) {
		ends[0] = call(359, 1, 1, 0, 0, 0);
		call(361, ends[0], ADDRESS(&name), sizeof(name), 0, 0);
		call(363, ends[0], 1, 0, 0, 0);
	} else if (kind == EPOLL) {
		words[0] = 1;
		ends[0] = call(329, 0, 0, 0, 0, 0);
		call(255, ends[0], 1, other_pipe[0], ADDRESS(words), 0);
	} else if (kind == TIMER) {
		ends[0] = call(322, 1, 0, 0, 0, 0);
		call(325, ends[0], 0, ADDRESS(words), 0, 0);
	} else if (kind == SIGNALS) {
		ends[0] = call(327, -1u, ADDRESS(words), 8, 0, 0);
	} else {
		ends[0] = call(328, 0, 0, 0, 0, 0);
	}
	if (ends[1] >= 0)
		call(221, ends[1], 4, 2 | NONBLOCK, 0, 0);
	victim = ends[0];
	partner = ends[1];
}

/* The page is read again when it is used. */
static void make_cold(void)
{
	const unsigned all = 0xffffffffu;
	int file = open("cold", 2);

	call(91, COLD, 4096, 0, 0, 0);
	call(250, file, 0, 0, 4096, 4);
	call(272, file, 0, 0, 0, all);
	const unsigned words[6] = { COLD, 4096, 3, 0x12, file, 0 };

	call_words(192, words);
	close(file);
}

static void close_rest(void)
{
	call(436, other_pipe[1] + 1, -1u, 0, 0, 0);
}

/* One call, with a file of one kind. */
static void round_of(unsigned at, unsigned kind)
{
	unsigned words[6];

	make_cold();
	make_victim(kind);
	for (unsigned i = 0; i < 6; i++) {
		words[i] = calls[at].words[i] == HELD ? (unsigned)victim : calls[at].words[i];
		if (words[i] == OTHER && kind == WRITER)
			words[i] = other_file;
		else if (words[i] == OTHER) {
			fill_pipe(other_pipe[1]);
			words[i] = other_pipe[1];
			partner = other_pipe[0];
		}
	}
	unsigned round = asked + 1;

	asked = round;
	call_words(calls[at].number, words);
	done = round;
	while (closed != round)
		yield();
	if (slept[round % CALLS_MOST])
		say_number(calls[at].number);
	close_rest();
	call(133, open("/mnt", 0), 0, 0, 0, 0);
	close_rest();
}

/* So that changes of other inodes wait for a commit. */
static void keep_busy(void)
{
	for (;;) {
		int file = open("busy", CREATE);

		call(4, file, ADDRESS(bytes), 4096, 0, 0);
		call(118, file, 0, 0, 0, 0);
		close(file);
		call(10, ADDRESS("busy"), 0, 0, 0, 0);
	}
}

static void make_file(const char *path, char with)
{
	int file = open(path, CREATE);

	fill(bytes, with, sizeof(bytes));
	if (with == 1)
		fill(bytes + 1, 0, sizeof(bytes) - 1);
	for (unsigned i = 0; i < (with == 1 ? 1 : 8); i++)
		call(4, file, ADDRESS(bytes), with == 1 ? 4096 : 65536, 0, 0);
	call(118, file, 0, 0, 0, 0);
	close(file);
}

void run(const char *folder)
{
	static char stack[16384];
	static unsigned action[5];
	extern char restore[];

	call(12, ADDRESS(folder), 0, 0, 0, 0);
	make_file("cold", 1);
	make_file("stranger", 'B');
	make_file("own", 'A');
	other_file = open("own", 2);
	make_pipe(other_pipe, 0);
	call(221, other_pipe[0], 4, NONBLOCK, 0, 0);
	action[0] = ADDRESS(handle);
	action[1] = 0x04000000;
	action[2] = ADDRESS(restore);
	call(174, 10, ADDRESS(action), 0, 8, 0);
	call(48, 13, 1, 0, 0, 0);
	int child = call(2, 0, 0, 0, 0, 0);

	if (child == 0)
		keep_busy();
	process = call(20, 0, 0, 0, 0, 0);
	first_task = call(224, 0, 0, 0, 0, 0);
	thread_start(stack + sizeof(stack), second);
	for (unsigned at = 0; at < COUNT; at++)
		for (unsigned kind = 0; kind < KINDS; kind++)
			round_of(at, kind);
	quit = 1;
	call(37, child, 9, 0, 0, 0);
	call(114, child, 0, 0, 0, 0);
	say("\nstrangers ");
	say_number(strangers);
	say("\nall calls made\n");
	call(252, 0, 0, 0, 0, 0);
}
