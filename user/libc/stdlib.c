/* Numbers in text, sorting, and the environment. */
#include <stdlib.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define PREFIX_ROOM 2 /* "0x" */

static int digit_of(char character)
{
	if (isdigit(character))
		return character - '0';
	return isalpha(character) ? tolower(character) - 'a' + 10 : INT_MAX;
}

/* Moves *text past a prefix of the base. Returns the base. */
static int read_base(const char **text, int base)
{
	const char *start = *text;

	if ((base == 0 || base == 16) && start[0] == '0' && tolower(start[1]) == 'x' &&
	    digit_of(start[PREFIX_ROOM]) < 16) {
		*text += PREFIX_ROOM;
		return 16;
	}
	if (base == 0)
		return *start == '0' ? 8 : 10;
	return base;
}

/* The number's magnitude, at most limit (errno is ERANGE when it was more); its sign apart. */
static unsigned long long read_number(const char *text, char **end, int base,
				      unsigned long long limit, bool *negative)
{
	unsigned long long value = 0;
	const char *start = text;

	while (isspace(*text))
		text++;
	*negative = *text == '-';
	if (*text == '-' || *text == '+')
		text++;
	base = read_base(&text, base);
	for (; digit_of(*text) < base; text++) {
		unsigned digit = digit_of(*text);

		start = text + 1;
		if (value > (limit - digit) / base) {
			errno = ERANGE;
			value = limit;
		} else {
			value = value * base + digit;
		}
	}
	if (end)
		*end = (char *)start;
	return value;
}

unsigned long long strtoull(const char *text, char **end, int base)
{
	bool negative;
	unsigned long long value = read_number(text, end, base, ULLONG_MAX, &negative);

	return negative ? -value : value;
}

unsigned long strtoul(const char *text, char **end, int base)
{
	bool negative;
	unsigned long value = read_number(text, end, base, ULONG_MAX, &negative);

	return negative ? -value : value;
}

long strtol(const char *text, char **end, int base)
{
	bool negative;
	unsigned long value = read_number(text, end, base, LONG_MAX, &negative);

	return negative ? -(long)value : (long)value;
}

int atoi(const char *text)
{
	return strtol(text, NULL, 10);
}

static void swap(char *left, char *right, size_t size)
{
	for (; size > 0; size--, left++, right++) {
		char kept = *left;

		*left = *right;
		*right = kept;
	}
}

/* Insertion sort: stable, and short. The lists here are a directory's. */
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	for (size_t i = 1; i < count; i++)
		for (char *place = (char *)base + i * size;
		     place > (char *)base && compare(place - size, place) > 0; place -= size)
			swap(place - size, place, size);
}

/* The place of NAME=value in environ, or of the NULL after the last. */
static char **find(const char *name)
{
	size_t length = strlen(name);
	char **place = environ;

	while (*place && (strncmp(*place, name, length) != 0 || (*place)[length] != '='))
		place++;
	return place;
}

char *getenv(const char *name)
{
	char **place = find(name);

	return *place ? *place + strlen(name) + 1 : NULL;
}

/* Returns the place for one more variable, in a copy of the list. */
static char **extend(void)
{
	size_t count = find("") - environ;
	char **larger = malloc((count + 2) * sizeof(*larger));

	if (!larger)
		return NULL;
	memcpy(larger, environ, count * sizeof(*larger));
	larger[count + 1] = NULL;
	environ = larger; /* the old list may be the kernel's, and is not freed */
	return larger + count;
}

int setenv(const char *name, const char *value, int overwrite)
{
	char **place = find(name);

	if (*place && !overwrite)
		return 0;
	char *text = malloc(strlen(name) + strlen(value) + 2);

	if (!text || (!*place && !(place = extend())))
		return -1;
	strcpy(text, name);
	strcat(text, "=");
	strcat(text, value);
	*place = text;
	return 0;
}

int unsetenv(const char *name)
{
	for (char **place = find(name); *place; place++)
		place[0] = place[1];
	return 0;
}

void abort(void)
{
	signal(SIGABRT, SIG_DFL);
	raise(SIGABRT);
	_exit(127);
}
