/*
 * Seeded calls about extended attributes in the directory given, and what each gave, for two
 * kernels to be compared:
 *
 *	attributes DIRECTORY COUNT SEED
 *
 * A line is: number, call, file, name, size, flags, then the result (or errno), and the sum of what
 * was got.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SIZE_MOST 70000

static const char *const files[] = { "file", "folder", "pipe", "link", "none" };
static const char *const names[] = {
	"user.a",
	"user.b",
	"trusted.a",
	"security.longer-name",
	"user.c0123456789012345678901234567890123456789",
	"trusted.d",
	"user.",
	"bogus.a",
	"",
	"user",
};
static const uint32_t sizes[] = { 0, 1, 4, 20, 33, 70, 200, 700, 1500, 3900, 4060, 4096, 5000 };

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static char buffer[SIZE_MOST];
static uint32_t state;

static uint32_t below(uint32_t limit)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % limit;
}

static uint32_t sum(long length)
{
	uint32_t result = 0;

	for (long i = 0; i < length; i++)
		result = result * 31 + (unsigned char)buffer[i];
	return result;
}

static void say(long result, bool got)
{
	if (result < 0)
		printf("errno %d\n", errno);
	else
		printf("%ld %08x\n", result, got ? sum(result) : 0);
}

static void set(const char *file, const char *name)
{
	uint32_t size = below(40) == 0 ? 65537 : sizes[below(COUNT_OF(sizes))];
	int flags = below(4) == 0 ? (int)below(5) : 0, descriptor;

	memset(buffer, 'a' + (int)below(26), size);
	printf("set %s %s %u %d: ", file, name, size, flags);
	switch (below(3)) {
	case 0:
		say(setxattr(file, name, buffer, size, flags), false);
		break;
	case 1:
		say(lsetxattr(file, name, buffer, size, flags), false);
		break;
	default:
		descriptor = open(file, O_RDONLY | O_NONBLOCK);
		say(fsetxattr(descriptor, name, buffer, size, flags), false);
		close(descriptor);
	}
}

static void get(const char *file, const char *name)
{
	uint32_t size = sizes[below(COUNT_OF(sizes))];

	printf("get %s %s %u: ", file, name, size);
	say(below(2) ? getxattr(file, name, buffer, size) : lgetxattr(file, name, buffer, size),
	    size > 0);
}

static void list(const char *file)
{
	uint32_t size = sizes[below(COUNT_OF(sizes))];

	printf("list %s %u: ", file, size);
	say(below(2) ? listxattr(file, buffer, size) : llistxattr(file, buffer, size), size > 0);
}

static void drop(const char *file, const char *name)
{
	printf("remove %s %s: ", file, name);
	say(below(2) ? removexattr(file, name) : lremovexattr(file, name), false);
}

/* Values go from and to memory that the program does not have. */
static void use_bad_pointers(void)
{
	char *volatile bad = (char *)16;
	const char *name = "user.pointer";
	int descriptor = open("file", O_RDONLY);

	say(setxattr("file", name, bad, 4, 0), false);
	say(lsetxattr("file", name, bad, 4, 0), false);
	say(fsetxattr(descriptor, name, bad, 4, 0), false);
	say(setxattr("file", name, "1234", 4, 0), false);
	say(getxattr("file", name, bad, 4), false);
	say(lgetxattr("file", name, bad, 4), false);
	say(fgetxattr(descriptor, name, bad, 4), false);
	say(listxattr("file", bad, sizeof(buffer)), false);
	say(llistxattr("file", bad, sizeof(buffer)), false);
	say(flistxattr(descriptor, bad, sizeof(buffer)), false);
}

int main(int count, char **words)
{
	int calls = count > 3 ? atoi(words[2]) : 0;

	if (count != 4 || chdir(words[1]) != 0)
		return 1;
	state = (uint32_t)atoi(words[3]);
	close(open("file", O_CREAT | O_WRONLY, 0644));
	if (mkdir("folder", 0755) || mkfifo("pipe", 0644) || symlink("folder", "link"))
		return 1;
	for (int i = 0; i < calls; i++) {
		uint32_t which = below(10);
		const char *file = files[below(12) == 0 ? 4 : below(4)];
		const char *name = names[below(8) == 0 ? below(COUNT_OF(names)) : below(6)];

		printf("%d ", i);
		if (which < 5)
			set(file, name);
		else if (which < 7)
			get(file, name);
		else if (which < 8)
			list(file);
		else
			drop(file, name);
	}
	use_bad_pointers();
	return 0;
}
