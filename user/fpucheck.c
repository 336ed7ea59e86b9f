/*
 * fpucheck [ROUNDS]: each process fills the registers of SSE and of the FPU with numbers of its
 * own, yields and computes for a while, and looks whether they are still there. No process may see
 * another's.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES	4
#define FXSAVE_MXCSR	24 /* in the image: SDM volume 1, table 10-2 */
#define FXSAVE_FPU	32 /* 8 registers of 16 bytes, 10 in use */
#define FPU_USED	10
#define FXSAVE_XMM	160 /* 8 registers of 16 bytes */
#define REGISTERS_BYTES 128

struct image {
	uint8_t bytes[512];
} __attribute__((aligned(16)));

static void save(struct image *image)
{
	__asm__ volatile("fxsave %0" : "=m"(*image));
}

static void load(const struct image *image)
{
	__asm__ volatile("fxrstor %0" : : "m"(*image));
}

/* The state at a program's start: SDM volume 3, 13.5.4, and Linux's MXCSR. */
static int check_start(void)
{
	struct image image;
	uint32_t mxcsr;

	save(&image);
	memcpy(&mxcsr, image.bytes + FXSAVE_MXCSR, sizeof(mxcsr));
	if (mxcsr == 0x1f80 && image.bytes[0] == 0x7f && image.bytes[1] == 0x03)
		return 0;
	printf("at the start: MXCSR is %#x, the control word %#x\n", (unsigned)mxcsr,
	       image.bytes[0] | image.bytes[1] << 8);
	return 1;
}

/* Differs in each register and in each process. */
static void fill(struct image *image, int mark)
{
	for (int i = 0; i < REGISTERS_BYTES; i++) {
		image->bytes[FXSAVE_XMM + i] = mark * 31 + i;
		if (i % 16 < FPU_USED)
			image->bytes[FXSAVE_FPU + i] = mark * 17 + i;
	}
}

static int same(const struct image *left, const struct image *right)
{
	for (int i = FXSAVE_FPU; i < FXSAVE_XMM; i += 16)
		if (memcmp(left->bytes + i, right->bytes + i, FPU_USED) != 0)
			return 0;
	return memcmp(left->bytes + FXSAVE_XMM, right->bytes + FXSAVE_XMM, REGISTERS_BYTES) == 0;
}

static int run(int mark, unsigned rounds)
{
	struct image wanted, got;

	save(&wanted);
	fill(&wanted, mark);
	for (unsigned round = 0; round < rounds; round++) {
		load(&wanted);
		if (round % 2)
			sched_yield();
		else
			for (volatile int i = 0; i < 20000; i++)
				;
		save(&got);
		if (!same(&got, &wanted)) {
			printf("process %d: its registers changed in round %u\n", mark, round);
			return 1;
		}
	}
	return 0;
}

int main(int count, char **arguments)
{
	unsigned rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 200;
	int failed = check_start();

	fflush(stdout);
	for (int mark = 1; mark < PROCESSES; mark++) {
		pid_t process = fork();

		if (process == 0)
			exit(run(mark, rounds));
		if (process < 0)
			break; /* a kernel with one task: it looks at the calls only */
	}
	failed |= run(0, rounds);
	for (int status; wait(&status) > 0;)
		failed |= status != 0;
	puts(failed ? "fpucheck: failed" : "fpucheck: ok");
	return failed;
}
