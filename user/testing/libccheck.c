/*
 * libccheck: the C library of these programs against what C and POSIX promise. Prints a line for
 * each check (KTAP).
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/lib/random.h"

#define BLOCKS 64
#define ROUNDS 20000u

static unsigned checks, failed;

static void check(const char *name, bool ok)
{
	printf("%s %u %s\n", ok ? "ok" : "not ok", ++checks, name);
	failed += !ok;
}

static void __attribute__((format(printf, 2, 3))) expect(const char *wanted, const char *format,
							 ...)
{
	char text[64];
	va_list arguments;

	va_start(arguments, format);
	int length = vsnprintf(text, sizeof(text), format, arguments);

	va_end(arguments);
	check(wanted, strcmp(text, wanted) == 0 && length == (int)strlen(wanted));
}

/* What the compiler would warn of where it knew that it is tested. */
static const char *volatile no_text;

static void check_formats(void)
{
	char text[4];

	expect("[   42|42   |00042|+42]", "[%5d|%-5d|%05d|%+d]", 42, 42, 42, 42);
	expect("[-2147483648 4294967295]", "[%d %u]", INT_MIN, UINT_MAX);
	expect("[-9223372036854775808]", "[%lld]", LLONG_MIN);
	expect("[18446744073709551615]", "[%llu]", ULLONG_MAX);
	expect("[ff FF 0xff 0 0x0000ff]", "[%x %X %#x %#x %#08x]", 255, 255, 255, 0, 255);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat" /* clang: too large for a char, as is meant */
	expect("[017 -1 255]", "[%#o %hhd %hhu]", 15, 0x1ff, 0x1ff);
#pragma GCC diagnostic pop
	expect("[ab|  abc|a%]", "[%.2s|%*s|%c%%]", "abc", 5, "abc", 'a');
	expect("[(null)|00007|]", "[%s|%.5d|%.0d]", no_text, 7, 0);
	check("text that is cut",
	      snprintf(text, sizeof(text), "%d", 12345) == 5 && strcmp(text, "123") == 0);
}

static void check_numbers(void)
{
	char *end;

	check("strtol, a sign", strtol(" -12x", &end, 10) == -12 && *end == 'x');
	check("strtoul, base 0", strtoul("0x1F", NULL, 0) == 31 && strtoul("010", NULL, 0) == 8);
	check("strtol, no digits", strtol("0x", &end, 0) == 0 && *end == 'x');
	errno = 0;
	check("strtol, too large", strtol("99999999999", NULL, 10) == LONG_MAX && errno == ERANGE);
	check("strtoull", strtoull("18446744073709551615", NULL, 10) == ULLONG_MAX);
}

static void check_strings(void)
{
	char text[32] = "abcdef";

	memmove(text + 2, text, 4);
	check("memmove up", strcmp(text, "ababcd") == 0);
	memmove(text, text + 2, 5);
	check("memmove down", strcmp(text, "abcd") == 0);
	check("strcmp is unsigned", strcmp("\xff", "a") > 0 && memcmp("\xff", "a", 1) > 0);
	check("strrchr", *strrchr("a/b/c", '/') == '/' && strchr("abc", 0) != NULL);
	check("strstr", strcmp(strstr("xabcy", "abc"), "abcy") == 0 && !strstr("ab", "abc"));
	check("strspn, strcspn", strspn("aab", "a") == 2 && strcspn("aab", "b") == 2);
}

/* quotient * divisor + remainder must give the dividend again, and the remainder be small. */
static void check_division(void)
{
	struct random random = { 1 };
	bool ok = true;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t dividend = random_next(&random) >> random_below(&random, 64);
		uint64_t divisor = random_next(&random) >> random_below(&random, 64) | 1;
		uint64_t quotient = dividend / divisor, remainder = dividend % divisor;
		int64_t left = dividend, right = divisor;

		ok &= quotient * divisor + remainder == dividend && remainder < divisor;
		ok &= left / right * right + left % right == left;
	}
	check("64-bit division", ok);
}

/* Random blocks, each filled with a byte of its own, which nothing else may change. */
static void check_memory(void)
{
	static struct {
		uint8_t *memory;
		size_t size;
	} blocks[BLOCKS];
	struct random random = { 2 };
	bool ok = true;

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned n = random_below(&random, BLOCKS);

		for (size_t j = 0; j < blocks[n].size; j++)
			ok &= blocks[n].memory[j] == n;
		blocks[n].size = random_below(&random, 200);
		if (random_below(&random, 2)) {
			free(blocks[n].memory);
			blocks[n].memory = malloc(blocks[n].size);
		} else {
			blocks[n].memory = realloc(blocks[n].memory, blocks[n].size);
		}
		ok &= blocks[n].memory != NULL && (uintptr_t)blocks[n].memory % 16 == 0;
		memset(blocks[n].memory, n, blocks[n].size);
	}
	check("malloc, realloc, free", ok);
	errno = 0;
	check("malloc of too much", !malloc(SIZE_MAX - 100) && errno == ENOMEM);
	check("calloc that wraps", !calloc(1u << 16, 1u << 16));
}

static int compare(const void *left, const void *right)
{
	return *(const int *)left - *(const int *)right;
}

static void check_sorting(void)
{
	int numbers[] = { 3, -1, 2, 2, 9, 0 };
	bool ok = true;

	qsort(numbers, 6, sizeof(numbers[0]), compare);
	for (int i = 1; i < 6; i++)
		ok &= numbers[i - 1] <= numbers[i];
	check("qsort", ok);
}

static void check_environment(void)
{
	setenv("SOMETHING", "one", 1);
	setenv("SOMETHING", "two", 0);
	check("setenv without overwriting", strcmp(getenv("SOMETHING"), "one") == 0);
	unsetenv("SOMETHING");
	check("unsetenv", !getenv("SOMETHING"));
}

static void check_calls(void)
{
	char buffer[16] = { 0 };
	int ends[2];

	errno = 0;
	check("an error is -1 and errno", close(-1) == -1 && errno == EBADF);
	check("the sixth argument", syscall(SYS_mmap2, 0, 4096, 3, 0x22, -1, 0) != -1);
	if (pipe(ends) < 0)
		return;
	check("a buffer is read again", write(ends[1], "abc", 3) == 3 && !buffer[0] &&
					    read(ends[0], buffer, 3) == 3 && buffer[2] == 'c');
	close(ends[0]);
	close(ends[1]);
}

static volatile sig_atomic_t received;

static void receive(int number)
{
	received = number;
}

static void check_signals(void)
{
	int status = 0;
	pid_t process;

	signal(SIGUSR1, receive);
	raise(SIGUSR1);
	check("a handler, and the way back", received == SIGUSR1);
	fflush(stdout);
	process = fork();
	if (process == 0)
		_exit(42);
	check("fork and wait", waitpid(process, &status, 0) == process && WIFEXITED(status) &&
				   WEXITSTATUS(status) == 42);
}

int main(void)
{
	check_formats();
	check_numbers();
	check_strings();
	check_division();
	check_memory();
	check_sorting();
	check_environment();
	check_calls();
	check_signals();
	printf("1..%u\n", checks);
	return failed > 0;
}
