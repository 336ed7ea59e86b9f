/* kernel/lib/format.c against the host's printf family, and what is the kernel's own: %p, NULL; and
 * kernel/report/symbols.c. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/lib/format.h"
#include "kernel/report/symbols.h"
#include "tests/host/unit.h"

#define FORMAT_SIZE 48
#define TEXT_SIZE   128

/* The functions' addresses, as the linker script gives them: here a piece of memory of 4096 bytes.
 */
__asm__(".pushsection .data\n"
	".globl text_start, text_end\n"
	"text_start: .skip 4096\n"
	"text_end:\n"
	".popsection");

extern const char text_start[], text_end[];

#define SYMBOLS 3

/* The build's table holds constants; these addresses are known only when the program runs. */
struct symbol symbol_table[SYMBOLS] __asm__("symbols");
const uint32_t symbol_count = SYMBOLS;

/* One conversion, and what to give it. */
struct request {
	char format[FORMAT_SIZE];
	unsigned stars;
	int star[2];
	char letter;
	int longs; /* which type the value has: 0 int, 1 long, 2 long long */
	uint64_t value;
	const char *text;
};

/* --- random conversions --- */

static void append(struct request *request, const char *piece)
{
	REQUIRE(strlen(request->format) + strlen(piece) < FORMAT_SIZE, "the format is too long");
	strcat(request->format, piece);
}

/* Flags that C11 defines for the letter. */
static void add_flags(struct request *request, struct random *random)
{
	const char *flags = strchr("xXo", request->letter)   ? "-0#+ "
			    : strchr("diu", request->letter) ? "-0+ "
							     : "-";

	for (uint64_t count = random_below(random, 4); count > 0; count--)
		append(request, (char[]){ flags[random_below(random, strlen(flags))], '\0' });
}

/* A width or precision: digits, or a star with its argument. */
static void add_number(struct request *request, struct random *random, bool may_be_negative)
{
	int number = random_below(random, 31);
	char digits[12];

	if (random_below(random, 4) == 0) {
		if (may_be_negative && random_below(random, 2))
			number = -number;
		request->star[request->stars++] = number;
		append(request, "*");
		return;
	}
	sprintf(digits, "%d", number);
	if (number > 0) /* "%0d" has a flag, no width; "%." means precision 0 */
		append(request, digits);
}

static void add_length(struct request *request, struct random *random)
{
	static const struct {
		const char *length;
		int longs;
	} lengths[] = { { "", 0 },   { "hh", 0 }, { "h", 0 }, { "l", 1 },
			{ "ll", 2 }, { "j", 2 },  { "z", 1 }, { "t", 1 } };
	unsigned choice = random_below(random, sizeof(lengths) / sizeof(lengths[0]));

	if (!strchr("diuxXo", request->letter))
		return;
	append(request, lengths[choice].length);
	request->longs = lengths[choice].longs;
}

static uint64_t random_value(struct random *random)
{
	static const uint64_t special[] = { 0,	      1,	 INT_MAX,   INT_MIN,  LONG_MAX,
					    LONG_MIN, LLONG_MAX, LLONG_MIN, UINT_MAX, UINT64_MAX,
					    0x80,     0x7f,	 0x8000 };

	if (random_below(random, 4) == 0)
		return special[random_below(random, sizeof(special) / sizeof(special[0]))];
	return random_below(random, 2) ? random_wide(random) : -random_wide(random);
}

static struct request make_request(struct random *random)
{
	static const char *const texts[] = { "", "a", "inode", "the quick brown fox\n" };
	struct request request = { .letter = "diuxXocs"[random_below(random, 8)],
				   .value = random_value(random),
				   .text = texts[random_below(random, 4)] };

	append(&request, random_below(random, 2) ? "<%" : "%%%");
	add_flags(&request, random);
	if (random_below(random, 2))
		add_number(&request, random, true);
	if (request.letter != 'c' && random_below(random, 2)) {
		append(&request, ".");
		add_number(&request, random, true);
	}
	add_length(&request, random);
	append(&request, (char[]){ request.letter, '>', '\0' });
	return request;
}

/* --- both formatters, with the arguments of the request --- */

typedef int formatter(char *buffer, size_t size, const char *format, ...);

#define WITH_STARS(value)                                                                          \
	(request->stars == 0 ? format(buffer, size, request->format, value)                        \
	 : request->stars == 1                                                                     \
	     ? format(buffer, size, request->format, request->star[0], value)                      \
	     : format(buffer, size, request->format, request->star[0], request->star[1], value))

static int apply(formatter *format, char *buffer, size_t size, const struct request *request)
{
	if (request->letter == 's')
		return WITH_STARS(request->text);
	if (request->longs == 2)
		return WITH_STARS((long long)request->value);
	if (request->longs == 1)
		return WITH_STARS((long)request->value);
	return WITH_STARS((int)request->value);
}

/* The kernel's buffer is allocated to the byte, for the sanitizer to guard. */
static void compare(const struct request *request, size_t size)
{
	char expected[TEXT_SIZE] = "";
	char *actual = malloc(size ? size : 1);
	int wanted = apply(snprintf, expected, size, request);
	int length = apply(snprintk, actual, size, request);

	REQUIRE(wanted == length, "%s: length %d instead of %d", request->format, length, wanted);
	REQUIRE(size == 0 || strcmp(expected, actual) == 0,
		"%s (value %#llx): '%s' instead of '%s'", request->format,
		(unsigned long long)request->value, actual, expected);
	free(actual);
}

static void test_random(struct random *random, uint32_t rounds)
{
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		struct request request = make_request(random);

		compare(&request, random_below(random, 4) ? TEXT_SIZE : random_below(random, 24));
	}
}

/* --- several arguments, and the edges of the buffer --- */

#define SAME(...)                                                                                  \
	do {                                                                                       \
		char expected[TEXT_SIZE], actual[TEXT_SIZE];                                       \
		int wanted = snprintf(expected, TEXT_SIZE, __VA_ARGS__);                           \
		int length = snprintk(actual, TEXT_SIZE, __VA_ARGS__);                             \
		REQUIRE(wanted == length && strcmp(expected, actual) == 0, "'%s' instead of '%s'", \
			actual, expected);                                                         \
	} while (0)

static void test_several(struct random *random, uint32_t rounds)
{
	(void)random, (void)rounds;
	SAME("%d %i %u %x", INT_MIN, INT_MAX, UINT_MAX, UINT_MAX);
	SAME("%lld %llu %llx %d", LLONG_MIN, ULLONG_MAX, ULLONG_MAX, 7);
	SAME("%s%c%5.2d%-*s|%hhd%hd", "ab", 'c', 3, 9, "left", -1, 40000);
	SAME("%*.*s|%-*.*d|%%", 10, 3, "abcdef", -8, 4, 17);
	SAME("%#x %#X %#o %#x %#o %#.0o", 255, 255, 8, 0, 0, 0);
	SAME("%.0d|%.d|%5.0u|%+.0d|% d|%+d", 0, 0, 0, 0, 5, 5);
	SAME("no conversion at all, 100%%");
}

#define IS(text, ...)                                                                              \
	do {                                                                                       \
		char actual[TEXT_SIZE];                                                            \
		int length = snprintk(actual, TEXT_SIZE, __VA_ARGS__);                             \
		REQUIRE(strcmp(actual, text) == 0 && length == (int)strlen(text),                  \
			"'%s' instead of '%s'", actual, text);                                     \
	} while (0)

static void test_own(struct random *random, uint32_t rounds)
{
	const char *volatile none = NULL; /* out of the compiler's sight: it knows better */
	const char *volatile format;

	(void)random, (void)rounds;
	IS("(null)|  (null)|(null)  |", "%s|%8s|%-8s|", none, none, none);
	IS("(nu", "%.3s", none);
	IS("0x00000000", "%p", (void *)0);
	IS("0xc0101234|  0x00001000|0x00001000  |", "%p|%12p|%-12p|",
	   (void *)(uintptr_t)0xc0101234u, (void *)0x1000, (void *)0x1000);
	format = "%y";
	IS("%y", format);
	for (format = "-#05.3ll"; *format; format++) { /* a text that ends in a conversion */
		char all[10] = "%";

		strcat(all, format);
		IS("", all);
	}
}

static void test_buffer(struct random *random, uint32_t rounds)
{
	const char *text = "0xc0101234|-2147483648|        ab";
	int whole = strlen(text);

	(void)random, (void)rounds;
	for (int size = 0; size <= whole + 2; size++) {
		char *buffer = malloc(size ? size : 1), untouched = buffer[0] = '#';
		int length = snprintk(buffer, size, "%#x|%d|%10s", 0xc0101234, INT_MIN, "ab");
		int kept = size == 0 ? 0 : size > whole ? whole : size - 1;

		REQUIRE(length == whole, "size %d: length %d instead of %d", size, length, whole);
		REQUIRE(strncmp(buffer, text, kept) == 0, "size %d: the text", size);
		REQUIRE(size > 0 ? buffer[kept] == '\0' : buffer[0] == untouched,
			"size %d: the end", size);
		free(buffer);
	}
}

/* --- symbols --- */

static void expect_symbol(const char *address, const char *name, uintptr_t start)
{
	char expected[TEXT_SIZE], actual[TEXT_SIZE];
	unsigned long number = (uintptr_t)address;

	if (name)
		snprintf(expected, TEXT_SIZE, "0x%08lx %s+0x%lx", number, name, number - start);
	else
		snprintf(expected, TEXT_SIZE, "0x%08lx", number);
	symbol_describe(number, actual, TEXT_SIZE);
	REQUIRE(strcmp(actual, expected) == 0, "'%s' instead of '%s'", actual, expected);
	REQUIRE(symbol_start(number) == (name ? start : 0), "the start of %s", expected);
}

static void test_symbols(struct random *random, uint32_t rounds)
{
	static const char *const names[SYMBOLS] = { "first", "second", "last" };
	static const unsigned offsets[SYMBOLS] = { 16, 17, 4000 };

	(void)random, (void)rounds;
	for (unsigned i = 0; i < SYMBOLS; i++)
		symbol_table[i] = (struct symbol){ (uintptr_t)text_start + offsets[i], names[i] };
	for (const char *at = text_start - 2; at < text_end + 2; at++) {
		const struct symbol *found = NULL;

		for (unsigned i = 0; i < SYMBOLS && at >= text_start && at < text_end; i++)
			if (symbol_table[i].address <= (uintptr_t)at)
				found = &symbol_table[i];
		expect_symbol(at, found ? found->name : NULL, found ? found->address : 0);
	}
}

const struct unit_test format_tests[] = {
	{ "format_random", test_random },   { "format_several", test_several },
	{ "format_own", test_own },	    { "format_buffer", test_buffer },
	{ "format_symbols", test_symbols }, { NULL, NULL },
};
