/*
 * Formats numbers of 64 bits with kernel/lib/format.c on this computer, where a sanitizer sees each
 * byte beyond a variable. Lines of standard input: a template with one conversion of a long long,
 * without blanks, and a number; the text is printed, a line each.
 */
#include <stdio.h>

#include "kernel/lib/format.h"
#include "tests/host/question.h"

int main(void)
{
	char template[32], text[512];
	unsigned long long number;

	while (scanf("%31s %llu", template, &number) == 2) {
		question_begins();
		snprintk(text, sizeof(text), template, number);
		puts(text);
	}
	return 0;
}
