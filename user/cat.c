/* cat [FILE ...]: copies files, or the standard input, to the standard output. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char buffer[16384];

static int complain(const char *name)
{
	fprintf(stderr, "cat: %s: %s\n", name, strerror(errno));
	return 1;
}

static int write_all(ssize_t length)
{
	for (ssize_t done = 0, part; done < length; done += part) {
		part = write(STDOUT_FILENO, buffer + done, length - done);
		if (part < 0)
			return complain("standard output");
	}
	return 0;
}

static int copy(int descriptor, const char *name)
{
	ssize_t length;

	while ((length = read(descriptor, buffer, sizeof(buffer))) > 0)
		if (write_all(length))
			return 1;
	return length < 0 ? complain(name) : 0;
}

static int copy_file(const char *name)
{
	int descriptor = open(name, O_RDONLY);

	if (descriptor < 0)
		return complain(name);
	int failed = copy(descriptor, name);

	close(descriptor);
	return failed;
}

int main(int count, char **arguments)
{
	int failed = 0;

	if (count == 1)
		return copy(STDIN_FILENO, "standard input");
	for (int i = 1; i < count; i++)
		failed |= copy_file(arguments[i]);
	return failed;
}
