/* fs/pipe.c against a pipe of the host: counts, contents, whole small writes, both ends' ends. */
#include <string.h>

#include "fs/vfs/path.h"
#include "fs/pipe.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/errno.h"
#include "tests/host/fs/oracle.h"
#include "tests/host/fs/shim.h"

#define CHUNK 70000u

/* The bytes on their way are those of a counter. */
struct stream {
	uint32_t written, taken;
};

/* Few bytes, around a page, or many. */
static uint32_t some_length(struct random *random)
{
	uint32_t kind = random_below(random, 6);

	return 1 + (kind < 2   ? random_below(random, 300)
		    : kind < 4 ? 3900 + random_below(random, 400)
			       : random_below(random, CHUNK - 1));
}

static void write_some(struct random *random, struct file *writer, struct stream *stream)
{
	static uint8_t bytes[CHUNK];
	uint32_t length = some_length(random);
	struct buffer buffer = buffer_of_kernel(bytes, length);

	for (uint32_t i = 0; i < length; i++)
		bytes[i] = (stream->written + i) * 7 >> 3;
	int moved = file_write(writer, &buffer), wanted = oracle_pipe_write(length);

	REQUIRE(moved == wanted, "%d of %u, on the host %d", moved, length, wanted);
	REQUIRE(length > PIPE_BUF || moved < 0 || moved == (int32_t)length,
		"a small write is torn apart");
	stream->written += moved > 0 ? moved : 0;
}

static void read_some(struct random *random, struct file *reader, struct stream *stream)
{
	static uint8_t bytes[CHUNK];
	uint32_t length = some_length(random);
	struct buffer buffer = buffer_of_kernel(bytes, length);
	int moved = file_read(reader, &buffer), wanted = oracle_pipe_read(length);

	REQUIRE(moved == wanted, "%d of %u, on the host %d", moved, length, wanted);
	for (int32_t i = 0; i < moved; i++)
		REQUIRE(bytes[i] == (uint8_t)((stream->taken + i) * 7 >> 3), "byte %d", i);
	stream->taken += moved > 0 ? moved : 0;
}

static void check_poll(struct file *reader, struct file *writer, const struct stream *stream)
{
	uint32_t filled = stream->written - stream->taken;

	REQUIRE(oracle_pipe_filled() == filled, "%u bytes", filled);
	REQUIRE(reader->ops->poll(reader, NULL) == (filled ? POLLIN : 0u), "what can be read");
	REQUIRE(writer->ops->poll(writer, NULL) == (oracle_pipe_is_writable() ? POLLOUT : 0u),
		"what can be written");
}

static void test_random(struct random *random, uint32_t rounds)
{
	struct file *reader, *writer;
	struct stream stream = { 0, 0 };

	REQUIRE(pipe_create(O_NONBLOCK, &reader, &writer) == 0, "a pipe");
	REQUIRE(oracle_pipe_begin() == 0, "a pipe of the host");
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		if (random_below(random, 2))
			write_some(random, writer, &stream);
		else
			read_some(random, reader, &stream);
		check_poll(reader, writer, &stream);
	}
	oracle_pipe_end();
	bool reader_first = random_below(random, 2);

	file_release(reader_first ? reader : writer);
	file_release(reader_first ? writer : reader);
	shim_require_no_leak("a pipe", 0);
}

static int read_byte(struct file *file)
{
	char byte;
	struct buffer buffer = buffer_of_kernel(&byte, 1);

	return file_read(file, &buffer);
}

static int write_byte(struct file *file)
{
	struct buffer buffer = buffer_of_kernel("x", 1);

	return file_write(file, &buffer);
}

/* Without memory, or without the other end. */
static void test_ends(struct random *random, uint32_t rounds)
{
	struct file *reader, *writer;

	(void)random, (void)rounds;
	REQUIRE(pipe_create(0, &reader, &writer) == 0, "a pipe");
	shim_pages_left = 0;
	REQUIRE(write_byte(writer) == -ENOMEM, "a write without memory");
	shim_pages_left = 100;
	REQUIRE(read_byte(reader) == -ERESTART, "an empty pipe: the reader sleeps");
	REQUIRE(write_byte(writer) == 1, "a byte");
	file_release(writer);
	REQUIRE(reader->ops->poll(reader, NULL) == (POLLIN | POLLHUP), "the last byte");
	REQUIRE(read_byte(reader) == 1 && read_byte(reader) == 0, "the end");
	file_release(reader);
	REQUIRE(pipe_create(0, &reader, &writer) == 0, "a pipe");
	file_release(reader);
	REQUIRE(write_byte(writer) == -EPIPE, "no reader");
	REQUIRE(writer->ops->poll(writer, NULL) & POLLERR, "no reader, polled");
	file_release(writer);
	shim_require_no_leak("the ends", 0);
}

static int open_named(uint32_t flags, struct file **file)
{
	return vfs_open(path_root(), "fifo", flags, 0, file);
}

static void test_named(struct random *random, uint32_t rounds)
{
	struct file *reader, *writer, *both;

	(void)random, (void)rounds;
	REQUIRE(vfs_make(path_root(), "fifo", S_IFIFO | 0600, 0) == 0, "a named pipe");
	REQUIRE(open_named(O_WRONLY | O_NONBLOCK, &writer) == -ENXIO, "no reader");
	REQUIRE(open_named(O_WRONLY, &writer) == -ERESTART, "no reader: it sleeps");
	REQUIRE(open_named(O_RDONLY, &reader) == -ERESTART, "no writer: it sleeps");
	REQUIRE(open_named(O_RDONLY | O_NONBLOCK, &reader) == 0, "a reader");
	REQUIRE(open_named(O_WRONLY, &writer) == 0, "a writer");
	REQUIRE(write_byte(writer) == 1 && read_byte(reader) == 1, "a byte");
	file_release(writer);
	REQUIRE(read_byte(reader) == 0, "the end");
	REQUIRE(open_named(O_RDWR, &both) == 0 && write_byte(both) == 1, "both ends");
	file_release(both);
	REQUIRE(read_byte(reader) == 1, "what it left");
	file_release(reader);
	shim_remove_all(path_root());
	shim_require_no_leak("a named pipe", 0);
}

const struct unit_test pipe_tests[] = {
	{ "pipe_random", test_random },
	{ "pipe_ends", test_ends },
	{ "pipe_named", test_named },
	{ 0 },
};
