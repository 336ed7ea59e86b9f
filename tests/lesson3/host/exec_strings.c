/*
 * exec_add_from_user on a program's memory that standard input describes, a command a line, with
 * hexadecimal numbers:
 *   at ADDRESS LENGTH HEX      puts this many bytes there
 *   kernel TEXT                adds one argument of the kernel's own
 *   add ARGUMENTS ENVIRONMENT  adds what the two arrays point to; prints the result, both counts,
 *                              the length, and the text in hexadecimal
 *   new                        forgets all that was added
 *   change ADDRESS LENGTH      another task changes each of these bytes as soon as it was read
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/lib/errno.h"
#include "kernel/process/exec.h"
#include "mm/user_copy.h"
#include "mm/page_alloc.h"
#include "tests/host/question.h"

#define START 0x08000000u
#define SIZE  0x40000u

#define CHANGED 0x04 /* of such bytes no pointer is made that is good */

static uint8_t memory[SIZE];
static uint32_t changing_from, changing_end;
static unsigned fetches;

void *page_alloc(unsigned order)
{
	return malloc((size_t)PAGE_SIZE << order);
}

void page_free(void *pages, unsigned order)
{
	(void)order;
	free(pages);
}

static bool is_there(uint32_t address, uint32_t length)
{
	return address >= START && address < START + SIZE && length <= START + SIZE - address;
}

static uint8_t fetch(uint32_t address)
{
	uint8_t value = memory[address - START];

	if (address >= changing_from && address < changing_end)
		memory[address - START] = CHANGED;
	return value;
}

/* An endless array is somebody's bug when it is read without an end. */
static void count_fetch(void)
{
	if (++fetches > 200000) {
		puts("endless");
		exit(0);
	}
}

uint32_t copy_from_user(void *to, uint32_t from, uint32_t length)
{
	uint32_t done = 0;

	count_fetch();
	while (done < length && is_there(from + done, 1)) {
		((uint8_t *)to)[done] = fetch(from + done);
		done++;
	}
	return length - done;
}

/* Its size is at least 1: who asks for less does not know what comes of it. */
int string_from_user(char *to, uint32_t from, uint32_t size)
{
	count_fetch();
	if (size == 0)
		return -EFAULT;
	for (uint32_t i = 0; i < size; i++) {
		if (!is_there(from + i, 1))
			return -EFAULT;
		to[i] = fetch(from + i);
		if (!to[i])
			return i;
	}
	return -ENAMETOOLONG;
}

static void put(uint32_t address)
{
	unsigned length = 0, value;

	if (scanf("%x", &length) != 1)
		return;
	for (; length > 0 && scanf("%2x", &value) == 1; length--, address++)
		if (is_there(address, 1))
			memory[address - START] = value;
}

static void add(struct exec_strings *strings)
{
	unsigned arguments, environment;

	if (scanf("%x %x", &arguments, &environment) != 2)
		return;
	fetches = 0;
	question_begins();
	int result = exec_add_from_user(strings, arguments, environment);

	printf("%d %u %u %u ", result, strings->arguments, strings->environment, strings->length);
	for (uint32_t i = 0; i < strings->length && i < EXEC_STRINGS; i++)
		printf("%02x", (uint8_t)strings->text[i]);
	puts(".");
}

int main(void)
{
	struct exec_strings strings;
	char word[16], text[64];
	unsigned address, length;

	exec_strings_create(&strings);
	while (scanf("%15s", word) == 1) {
		if (strcmp(word, "at") == 0 && scanf("%x", &address) == 1) {
			put(address);
		} else if (strcmp(word, "kernel") == 0 && scanf("%63s", text) == 1) {
			exec_add(&strings, text, &strings.arguments);
		} else if (strcmp(word, "add") == 0) {
			add(&strings);
		} else if (strcmp(word, "change") == 0 && scanf("%x %x", &address, &length) == 2) {
			changing_from = address;
			changing_end = address + length;
		} else {
			exec_strings_destroy(&strings);
			exec_strings_create(&strings);
		}
	}
	exec_strings_destroy(&strings);
	return 0;
}
