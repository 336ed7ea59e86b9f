/* ps: the processes, as /proc/PID/stat tells of them. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELDS		 24 /* of the line, after the name */
#define TICKS_PER_SECOND 100

/* Fields of proc(5), counted from the state, which is its third. */
enum { STATE = 0, PARENT = 1, USER_TICKS = 11, SYSTEM_TICKS = 12, SIZE = 20 };

/* Reads a process's line. Returns NULL when it is gone. */
static char *read_line(const char *pid)
{
	static char line[1024];
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	int descriptor = open(path, O_RDONLY);

	if (descriptor < 0)
		return NULL;
	ssize_t length = read(descriptor, line, sizeof(line) - 1);

	close(descriptor);
	line[length > 0 ? length : 0] = '\0';
	return length > 0 ? line : NULL;
}

static int split(char *text, char **fields)
{
	int count = 0;

	while (count < FIELDS) {
		while (isspace(*text))
			*text++ = '\0';
		if (!*text)
			break;
		fields[count++] = text;
		while (*text && !isspace(*text))
			text++;
	}
	return count;
}

/* A line is: pid (name) state parent ... The name may hold anything, so its end is the last ')'. */
static void show(char *line)
{
	char *name = strchr(line, '('), *end = strrchr(line, ')'), *fields[FIELDS];

	if (!name || !end)
		return;
	*end = '\0';
	if (split(end + 1, fields) <= SIZE)
		return;
	unsigned long ticks =
	    strtoul(fields[USER_TICKS], NULL, 10) + strtoul(fields[SYSTEM_TICKS], NULL, 10);

	printf("%5d %5s %s %4lu.%02lu %7lu %s\n", atoi(line), fields[PARENT], fields[STATE],
	       ticks / TICKS_PER_SECOND, ticks % TICKS_PER_SECOND,
	       strtoul(fields[SIZE], NULL, 10) / 1024, name + 1);
}

int main(void)
{
	DIR *directory = opendir("/proc");

	if (!directory) {
		perror("ps: /proc");
		return 1;
	}
	if (!read_line("self")) {
		fputs("ps: /proc is empty: this kernel has none\n", stderr);
		return 1;
	}
	puts("  PID  PPID S    TIME    SIZE COMMAND");
	for (struct dirent *entry; (entry = readdir(directory));) {
		char *line = isdigit(entry->d_name[0]) ? read_line(entry->d_name) : NULL;

		if (line)
			show(line);
	}
	return 0;
}
