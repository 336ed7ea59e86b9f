/*
 * Answers questions about descriptors, one a line of standard input, one answer a line:
 *   pack BASE LIMIT ACCESS FLAGS      the 64 bits
 *   unpack BITS                       base, limit, access, flags
 * All numbers are hexadecimal, without 0x.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/cpu/descriptor.h"
#include "tests/host/question.h"

static void answer_pack(void)
{
	struct descriptor descriptor;

	if (scanf("%" SCNx32 "%" SCNx32 "%" SCNx8 "%" SCNx8, &descriptor.base, &descriptor.limit,
		  &descriptor.access, &descriptor.flags) == 4)
		printf("%" PRIx64 "\n", descriptor_pack(&descriptor));
}

static void answer_unpack(void)
{
	uint64_t packed;

	if (scanf("%" SCNx64, &packed) != 1)
		return;
	struct descriptor descriptor = descriptor_unpack(packed);

	printf("%" PRIx32 " %" PRIx32 " %x %x\n", descriptor.base, descriptor.limit,
	       descriptor.access, descriptor.flags);
}

int main(void)
{
	char word[8];

	while (scanf("%7s", word) == 1) {
		question_begins();
		if (strcmp(word, "pack") == 0)
			answer_pack();
		else
			answer_unpack();
	}
	return 0;
}
