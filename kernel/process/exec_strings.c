/*
 * The arguments and the environment of a new program, as one text:
 *
 *	l s \0 / b i n \0 H O M E = / \0	2 arguments, 1 of the environment, length 15
 *
 * They are copied out of the old program, whose memory may contain anything, and may change
 * meanwhile. Each string is fetched once, and only that copy is used. May sleep.
 */
#include "kernel/process/exec_strings.h"
#include "kernel/lib/string.h"
#include "mm/user_copy.h"
#include "mm/page_alloc.h"

#define ORDER 5 /* EXEC_STRINGS bytes */

/* 128 KiB, half of a program's stack: what fits here fits there. */
int exec_strings_create(struct exec_strings *strings)
{
	*strings = (struct exec_strings){ .text = page_alloc(ORDER) };
	return strings->text ? 0 : -ENOMEM;
}

void exec_strings_destroy(struct exec_strings *strings)
{
	page_free(strings->text, ORDER);
}

int exec_add(struct exec_strings *strings, const char *text, uint32_t *count)
{
	uint32_t size = strlen(text) + 1;

	if (size > EXEC_STRINGS - strings->length)
		return -E2BIG;
	memcpy(strings->text + strings->length, text, size);
	strings->length += size;
	(*count)++;
	return 0;
}

/* EXERCISE 3.6 (programs that mean harm, part 2): the strings that execve passes to a new
   program.

   - add_string: appends the string at a user address, with its NUL, to strings->text, and adds
     its size to strings->length; or returns -EFAULT or -E2BIG, and the length is as before.
   - add_array: appends the strings of a user array of pointers that ends with a null pointer (a
     null array is empty), and adds their number to *count. Returns 0 or the first error.

   Pitfalls: neither a string nor the array need have an end; the room of EXEC_STRINGS bytes has
   one, and it may be full. The old program may change the array while you read it. */
/* SOLUTION 3.6 { */
/* Adds the string at a user address. */
static int add_string(struct exec_strings *strings, uint32_t address)
{
	uint32_t room = EXEC_STRINGS - strings->length;
	int length = -E2BIG;

	if (room > 0)
		length = string_from_user(strings->text + strings->length, address, room);
	if (length < 0)
		return length == -ENAMETOOLONG ? -E2BIG : length;
	strings->length += length + 1;
	return 0;
}

/* Adds the strings of a user array, and counts them. */
static int add_array(struct exec_strings *strings, uint32_t array, uint32_t *count)
{
	for (; array; array += sizeof(uint32_t)) {
		uint32_t address;

		if (copy_from_user(&address, array, sizeof(address)) != 0)
			return -EFAULT;
		if (!address)
			break;
		int error = add_string(strings, address);

		if (error)
			return error;
		(*count)++;
	}
	return 0;
}
/* } SOLUTION 3.6 */

/* The two arrays of execve, each ended by a null pointer. */
int exec_add_from_user(struct exec_strings *strings, uint32_t arguments, uint32_t environment)
{
	int error = add_array(strings, arguments, &strings->arguments);

	return error ? error : add_array(strings, environment, &strings->environment);
}
