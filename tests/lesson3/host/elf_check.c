/*
 * Answers questions about files, one a line of standard input: the number of bytes that could be
 * read, and the beginning in hexadecimal. The answer is what elf_check returns, and the bias. The
 * image is where the sanitizer sees a read beyond it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/process/exec_elf.h"
#include "kernel/task/task.h"
#include "mm/space.h"
#include "tests/host/question.h"

struct task *current;

int space_map(struct space *space, uint32_t address, uint32_t length, unsigned protection)
{
	(void)space, (void)address, (void)length, (void)protection;
	abort();
}

void space_set_heap(struct space *space, uint32_t address)
{
	(void)space, (void)address;
	abort();
}

bool space_can_hold(uint32_t address, uint32_t length)
{
	(void)address, (void)length;
	abort();
}

int main(void)
{
	struct elf_image *image = malloc(sizeof(*image));
	unsigned bytes, value;

	while (scanf("%u", &bytes) == 1) {
		memset(image, 0, sizeof(*image));
		image->bytes = bytes;
		image->bias = 0x5a5a0000; /* another program's */
		for (unsigned i = 0; i < ELF_BEGINNING && scanf("%2x", &value) == 1; i++)
			image->beginning[i] = value;
		question_begins();
		int result = elf_check(image);

		printf("%d %x\n", result, result ? 0 : image->bias);
	}
	free(image);
	return 0;
}
