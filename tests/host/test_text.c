/* kernel/lib/string.c against the host's C library, kernel/lib/number.c against strtoull. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/lib/number.h"
#include "tests/host/unit.h"

/* kernel/lib/string.c, as tests/host/rename.h names it here. */
void *kernel_memcpy(void *restrict to, const void *restrict from, size_t length);
void *kernel_memmove(void *to, const void *from, size_t length);
void *kernel_memset(void *to, int byte, size_t length);
int kernel_memcmp(const void *left, const void *right, size_t length);
size_t kernel_strlen(const char *text);
int kernel_strcmp(const char *left, const char *right);
int kernel_strncmp(const char *left, const char *right, size_t length);
char *kernel_strchr(const char *text, int character);

#define SIZE 64u

static void fill(struct random *random, uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = random_next(random);
}

/* Copies, moves or sets inside one buffer, and the same with the host's function in another. */
static void test_memory(struct random *random, uint32_t rounds)
{
	uint8_t ours[SIZE], theirs[SIZE], source[SIZE];

	for (unit_round = 0; unit_round < rounds; unit_round++) {
		size_t length = random_below(random, SIZE / 2 + 1);
		size_t from = random_below(random, SIZE - length + 1);
		size_t to = random_below(random, SIZE - length + 1);
		int byte = random_below(random, 1024);

		fill(random, ours, SIZE);
		fill(random, source, SIZE);
		memcpy(theirs, ours, SIZE);
		memmove(theirs + to, theirs + from, length);
		REQUIRE(kernel_memmove(ours + to, ours + from, length) == ours + to,
			"memmove's result");
		REQUIRE(memcmp(ours, theirs, SIZE) == 0, "memmove %zu to %zu, %zu bytes", from, to,
			length);
		memcpy(theirs + to, source + from, length);
		REQUIRE(kernel_memcpy(ours + to, source + from, length) == ours + to,
			"memcpy's result");
		REQUIRE(memcmp(ours, theirs, SIZE) == 0, "memcpy of %zu bytes", length);
		memset(theirs + from, byte, length);
		REQUIRE(kernel_memset(ours + from, byte, length) == ours + from, "memset's result");
		REQUIRE(memcmp(ours, theirs, SIZE) == 0, "memset of %zu bytes to %d", length, byte);
	}
}

static int sign(int number)
{
	return (number > 0) - (number < 0);
}

/* A short text of few different characters, some of them above 127: equal beginnings are likely. */
static char *random_text(struct random *random)
{
	size_t length = random_below(random, 9);
	char *text = malloc(length + 1);

	for (size_t i = 0; i < length; i++)
		text[i] = "aab\x7f\x80\xff"[random_below(random, 6)];
	text[length] = '\0';
	return text;
}

static void compare_texts(const char *a, const char *b, size_t length, int character)
{
	REQUIRE(kernel_strlen(a) == strlen(a), "strlen");
	REQUIRE(sign(kernel_strcmp(a, b)) == sign(strcmp(a, b)), "strcmp of '%s' and '%s'", a, b);
	REQUIRE(sign(kernel_strncmp(a, b, length)) == sign(strncmp(a, b, length)),
		"strncmp of '%s' and '%s', %zu characters", a, b, length);
	REQUIRE(kernel_strchr(a, character) == strchr(a, character), "strchr of %d in '%s'",
		character, a);
	if (length <= strlen(a) && length <= strlen(b))
		REQUIRE(sign(kernel_memcmp(a, b, length)) == sign(memcmp(a, b, length)),
			"memcmp of '%s' and '%s', %zu bytes", a, b, length);
}

static void test_strings(struct random *random, uint32_t rounds)
{
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		char *a = random_text(random), *b = random_text(random);

		compare_texts(a, b, random_below(random, 10), (int)random_below(random, 640) - 128);
		free(a);
		free(b);
	}
}

/* --- numbers --- */

static const struct {
	const char *text;
	bool good;
	uint64_t value;
} numbers[] = {
	{ "0", true, 0 },
	{ "00", true, 0 },
	{ "007", true, 7 },
	{ "0x0", true, 0 },
	{ "0xfF", true, 255 },
	{ "9223372036854775808", true, 1ull << 63 },
	{ "1152921504606846976", true, 1ull << 60 },
	{ "11529215046068469760", true, 11529215046068469760u },
	{ "18446744073709551615", true, UINT64_MAX },
	{ "00000000000018446744073709551615", true, UINT64_MAX },
	{ "0xffffffffffffffff", true, UINT64_MAX },
	{ "0x0000000ffffffffffffffff", true, UINT64_MAX },
	{ "18446744073709551616", false, 0 },
	{ "18446744073709551620", false, 0 },
	{ "28446744073709551615", false, 0 },
	{ "0x10000000000000000", false, 0 },
	{ "99999999999999999999999", false, 0 },
	{ "", false, 0 },
	{ "0x", false, 0 },
	{ "x1", false, 0 },
	{ "-1", false, 0 },
	{ "+1", false, 0 },
	{ " 1", false, 0 },
	{ "1 ", false, 0 },
	{ "1a", false, 0 },
	{ "0xg", false, 0 },
	{ "0x0x1", false, 0 },
	{ "1.5", false, 0 },
	{ "\xb2", false, 0 },
};

static void test_number_table(struct random *random, uint32_t rounds)
{
	(void)random, (void)rounds;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t value;
		bool good = number_parse(numbers[i].text, &value);

		REQUIRE(good == numbers[i].good, "'%s' is %s", numbers[i].text,
			good ? "taken" : "refused");
		REQUIRE(!good || value == numbers[i].value, "'%s' gives %" PRIu64, numbers[i].text,
			value);
	}
}

/* What number_parse promises, by way of the host's strtoull. */
static bool parse(const char *text, uint64_t *value)
{
	bool hexadecimal = strncmp(text, "0x", 2) == 0;
	const char *digits = hexadecimal ? text + 2 : text;
	size_t good = strspn(digits, hexadecimal ? "0123456789abcdefABCDEF" : "0123456789");

	errno = 0;
	*value = strtoull(digits, NULL, hexadecimal ? 16 : 10);
	return good > 0 && digits[good] == '\0' && errno == 0;
}

static void random_number_text(struct random *random, char *text)
{
	uint64_t value = random_wide(random);
	int length = sprintf(text, random_below(random, 2) ? "%" PRIu64 : "0x%" PRIx64, value);

	if (random_below(random, 4) == 0) /* often too large by one digit */
		length += sprintf(text + length, "%u", (unsigned)random_below(random, 10));
	if (random_below(random, 4) == 0)
		text[random_below(random, length)] = "0x19afgG -"[random_below(random, 10)];
}

static void test_number_random(struct random *random, uint32_t rounds)
{
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		char text[32];
		uint64_t value, expected;

		random_number_text(random, text);
		bool good = parse(text, &expected);

		REQUIRE(number_parse(text, &value) == good, "'%s' is %s", text,
			good ? "refused" : "taken");
		REQUIRE(!good || value == expected, "'%s' gives %" PRIu64, text, value);
	}
}

const struct unit_test text_tests[] = {
	{ "string_memory", test_memory },
	{ "string_text", test_strings },
	{ "number_table", test_number_table },
	{ "number_random", test_number_random },
	{ NULL, NULL },
};
