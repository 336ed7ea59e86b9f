/*
 * closecost: ticks of the processor's counter that dup and close of a descriptor take, with few and
 * with many items of epolls in the system. Without a C library, as descriptors.c.
 */
#define FILES  400u
#define EPOLLS 8u
#define FEW    10u
#define ROUNDS 11
#define TIMES  100

long call_words(unsigned number, const unsigned *words);

__asm__(".globl _start, call_words\n"
	"_start: call run\n"
	"call_words: pushl %edi; pushl %esi; pushl %ebx; movl 16(%esp), %eax; movl 20(%esp), %edi\n"
	"movl (%edi), %ebx; movl 4(%edi), %ecx; movl 8(%edi), %edx; movl 12(%edi), %esi\n"
	"int $0x80; popl %ebx; popl %esi; popl %edi; ret\n");

static unsigned files[FILES], epolls[EPOLLS];

static long call(unsigned number, unsigned a, unsigned b, unsigned c, unsigned d)
{
	const unsigned words[4] = { a, b, c, d };

	return call_words(number, words);
}

static unsigned ticks(void)
{
	unsigned low;

	__asm__ volatile("rdtsc" : "=a"(low) : : "edx");
	return low;
}

/* The fastest of some rounds: no timer interrupt comes in it. */
static unsigned cost_of(unsigned file)
{
	unsigned best = -1u;

	for (int round = 0; round < ROUNDS; round++) {
		unsigned begin = ticks();

		for (int i = 0; i < TIMES; i++)
			call(6, call(41, file, 0, 0, 0), 0, 0, 0);
		unsigned taken = ticks() - begin;

		best = taken < best ? taken : best;
	}
	return best / TIMES;
}

static void watch(unsigned first, unsigned last, unsigned epoll)
{
	const unsigned event[3] = { 1, 0, 0 };

	for (unsigned i = first; i < last; i++)
		call(255, epolls[epoll], 1, files[i], (unsigned)event);
}

static void say(unsigned number)
{
	char text[12] = "          \n", *at = text + 10;

	do
		*--at = '0' + number % 10;
	while (number /= 10);
	call(4, 1, (unsigned)at, text + 11 - at, 0);
}

void run(void)
{
	unsigned other = call(328, 0, 0, 0, 0);

	for (unsigned i = 0; i < EPOLLS; i++)
		epolls[i] = call(329, 0, 0, 0, 0);
	for (unsigned i = 0; i < FILES; i++)
		files[i] = call(328, 0, 0, 0, 0);
	watch(0, FEW, 0);
	say(cost_of(other));
	say(cost_of(files[0]));
	for (unsigned i = 0; i < EPOLLS; i++)
		watch(i ? 0 : FEW, FILES, i);
	say(cost_of(other));
	say(cost_of(files[0]));
	call(252, 0, 0, 0, 0);
}
