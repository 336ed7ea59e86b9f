/* Streams: files with a buffer. */
#include <stdio.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/libc/format.h"

#define STREAMS 16

/* How long text waits in the buffer. */
enum waits { UNTIL_FULL, UNTIL_LINE, NOT };

struct stream {
	int descriptor;
	bool is_open, at_end, has_failed;
	bool is_known; /* whether it is a terminal: asked at the first write */
	enum waits waits;
	size_t position, length; /* input: next character, and how many; output: length only */
};

static struct stream streams[STREAMS] = {
	{ .descriptor = STDIN_FILENO, .is_open = true },
	{ .descriptor = STDOUT_FILENO, .is_open = true },
	{ .descriptor = STDERR_FILENO, .is_open = true, .waits = NOT, .is_known = true },
};

/* Beside them: so they take no room in the program's file. */
static char buffers[STREAMS][BUFSIZ];

FILE *const stdin = &streams[STDIN_FILENO];
FILE *const stdout = &streams[STDOUT_FILENO];
FILE *const stderr = &streams[STDERR_FILENO];

static char *buffer_of(const FILE *stream)
{
	return buffers[stream - streams];
}

static int flags_of(const char *mode)
{
	if (*mode == 'r')
		return O_RDONLY;
	return O_WRONLY | O_CREAT | (*mode == 'a' ? O_APPEND : O_TRUNC);
}

FILE *fopen(const char *path, const char *mode)
{
	for (FILE *stream = streams; stream < streams + STREAMS; stream++) {
		if (stream->is_open)
			continue;
		int descriptor = open(path, flags_of(mode), 0666);

		if (descriptor < 0)
			return NULL;
		memset(stream, 0, sizeof(*stream));
		stream->descriptor = descriptor;
		stream->is_open = true;
		return stream;
	}
	errno = EMFILE;
	return NULL;
}

int fclose(FILE *stream)
{
	int failed = fflush(stream);

	stream->is_open = false;
	return close(stream->descriptor) < 0 ? EOF : failed;
}

int fileno(FILE *stream)
{
	return stream->descriptor;
}

int ferror(FILE *stream)
{
	return stream->has_failed;
}

int feof(FILE *stream)
{
	return stream->at_end;
}

/* ---- output ---- */

static int flush(FILE *stream)
{
	size_t done = 0;

	while (stream->is_open && stream->position == 0 && done < stream->length) {
		ssize_t part =
		    write(stream->descriptor, buffer_of(stream) + done, stream->length - done);

		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0) {
			stream->has_failed = true;
			break;
		}
		done += part;
	}
	stream->position = stream->length = 0;
	return stream->has_failed ? EOF : 0;
}

int fflush(FILE *stream)
{
	int failed = 0;

	if (stream)
		return flush(stream);
	for (stream = streams; stream < streams + STREAMS; stream++)
		if (stream != stdin && stream->is_open && flush(stream) < 0)
			failed = EOF;
	return failed;
}

static enum waits waits_of(FILE *stream)
{
	if (!stream->is_known) {
		int before = errno;

		stream->waits = isatty(stream->descriptor) ? UNTIL_LINE : UNTIL_FULL;
		stream->is_known = true;
		errno = before;
	}
	return stream->waits;
}

static void put(void *target, char character)
{
	FILE *stream = target;

	buffer_of(stream)[stream->length++] = character;
	if (stream->length == BUFSIZ || (character == '\n' && waits_of(stream) == UNTIL_LINE))
		flush(stream);
}

/* What was put need not wait any longer where nothing does. */
static int settle(FILE *stream)
{
	return stream->waits == NOT && stream->is_known ? flush(stream) : 0;
}

int fputc(int character, FILE *stream)
{
	put(stream, character);
	return settle(stream) < 0 ? EOF : (unsigned char)character;
}

size_t fwrite(const void *memory, size_t size, size_t count, FILE *stream)
{
	for (size_t i = 0; i < size * count; i++)
		put(stream, ((const char *)memory)[i]);
	return settle(stream) < 0 ? 0 : count;
}

int fputs(const char *text, FILE *stream)
{
	fwrite(text, 1, strlen(text), stream);
	return stream->has_failed ? EOF : 0;
}

int putchar(int character)
{
	return fputc(character, stdout);
}

int puts(const char *text)
{
	fputs(text, stdout);
	return putchar('\n');
}

void perror(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
}

int vfprintf(FILE *stream, const char *format, va_list arguments)
{
	int length = format_text(put, stream, format, arguments);

	return settle(stream) < 0 ? -1 : length;
}

int fprintf(FILE *stream, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int length = vfprintf(stream, format, arguments);

	va_end(arguments);
	return length;
}

int printf(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int length = vfprintf(stdout, format, arguments);

	va_end(arguments);
	return length;
}

/* Without a buffer that lives on: what is longer is cut. */
int dprintf(int descriptor, const char *format, ...)
{
	char text[BUFSIZ];
	va_list arguments;

	va_start(arguments, format);
	int length = vsnprintf(text, sizeof(text), format, arguments);

	va_end(arguments);
	return write(descriptor, text, length < BUFSIZ ? length : BUFSIZ - 1);
}

/* ---- input ---- */

/* Returns 0, or EOF. */
static int fill(FILE *stream)
{
	ssize_t length;

	do
		length = read(stream->descriptor, buffer_of(stream), BUFSIZ);
	while (length < 0 && errno == EINTR);
	stream->position = 0;
	stream->length = length > 0 ? length : 0;
	stream->has_failed |= length < 0;
	stream->at_end |= length == 0;
	return length > 0 ? 0 : EOF;
}

int fgetc(FILE *stream)
{
	if (stream->position == stream->length && fill(stream) < 0)
		return EOF;
	return (unsigned char)buffer_of(stream)[stream->position++];
}

int getchar(void)
{
	return fgetc(stdin);
}

char *fgets(char *line, int size, FILE *stream)
{
	int length = 0, character = 0;

	while (length < size - 1 && character != '\n') {
		character = fgetc(stream);
		if (character == EOF)
			break;
		line[length++] = character;
	}
	line[length] = '\0';
	return length > 0 ? line : NULL;
}

size_t fread(void *memory, size_t size, size_t count, FILE *stream)
{
	size_t done = 0;

	while (done < size * count) {
		int character = fgetc(stream);

		if (character == EOF)
			break;
		((char *)memory)[done++] = character;
	}
	return size ? done / size : 0;
}
