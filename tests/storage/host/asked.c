/* Questions to the process that has started this one, a line each. */
#define _GNU_SOURCE
#include "tests/storage/host/asked.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST	    (128u << 10) /* of a question, in letters */
#define MOST_ANSWER (1u << 20)	 /* a longer one is read all the same */

static char text[MOST];

static char *answer_to(size_t length)
{
	static char *line;
	static size_t room;

	if (!line)
		line = malloc(room = MOST_ANSWER); /* so that what a test counts is not this */
	text[length++] = '\n';
	if (write(STDOUT_FILENO, text, length) != (ssize_t)length ||
	    getline(&line, &room, stdin) <= 0)
		_exit(3);
	return line;
}

char *ask(const char *format, ...)
{
	va_list arguments;

	text[0] = '\1';
	va_start(arguments, format);
	int length = vsnprintf(text + 1, MOST - 2, format, arguments);

	va_end(arguments);
	return answer_to(1 + (size_t)length);
}

char *ask_with(const char *words, const void *bytes, size_t count)
{
	static const char digits[] = "0123456789abcdef";
	size_t at = (size_t)snprintf(text, MOST, "\1%s ", words);

	if (count > (MOST - at - 1) / 2)
		_exit(3);
	for (size_t i = 0; i < count; i++) {
		uint8_t byte = ((const uint8_t *)bytes)[i];

		text[at++] = digits[byte >> 4];
		text[at++] = digits[byte & 15];
	}
	return answer_to(at);
}

static uint8_t digit(char letter)
{
	return (uint8_t)(letter <= '9' ? letter - '0' : letter - 'a' + 10);
}

void take_hex(void *bytes, size_t count, const char *hex)
{
	size_t given = strcspn(hex, "\n") / 2;

	memset(bytes, 0, count);
	for (size_t i = 0; i < count && i < given; i++)
		((uint8_t *)bytes)[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
}
