/* Operations on mappings of files, of which each process has two. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsx.h"

#define MAPS 2

static struct {
	uint8_t *bytes; /* NULL: none */
	uint32_t length, offset;
	int file;
} maps[MAPS];

static sigjmp_buf after_fault;

static void on_fault(int number)
{
	siglongjmp(after_fault, number);
}

/* Runs a function that touches the mapping; says which signal it gave. */
static void touch(void (*run)(uint8_t *, uint32_t), uint8_t *bytes, uint32_t length)
{
	struct sigaction action = { .sa_handler = on_fault };
	int number;

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	number = sigsetjmp(after_fault, 1);
	if (number == 0)
		run(bytes, length);
	else
		say(" %s", number == SIGBUS ? "SIGBUS" : "SIGSEGV");
}

static void remove_map(uint32_t slot)
{
	if (!maps[slot].bytes)
		return;
	munmap(maps[slot].bytes, maps[slot].length);
	close(maps[slot].file);
	maps[slot].bytes = NULL;
}

void map_file(void)
{
	uint32_t slot = below(MAPS);

	say("mmap %u", slot);
	int file = any_file();
	uint32_t offset = any_offset() / PAGE * PAGE, length = below(BUFFER) + 1;
	bool is_shared = below(3) > 0;

	say(" %u at %u %s", length, offset, is_shared ? "shared" : "private");
	remove_map(slot);
	void *bytes = mmap(NULL, length, PROT_READ | PROT_WRITE,
			   is_shared ? MAP_SHARED : MAP_PRIVATE, file, offset);

	say_result(bytes == MAP_FAILED ? -1 : 0);
	if (bytes == MAP_FAILED)
		return;
	maps[slot].bytes = bytes;
	maps[slot].length = length;
	maps[slot].offset = offset;
	maps[slot].file = dup(file);
}

static void copy_out(uint8_t *bytes, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		buffer[i] = ((volatile uint8_t *)bytes)[i];
}

void read_map(void)
{
	uint32_t slot = below(MAPS), length = any_length(), part = below(BUFFER);

	say("look %u", slot);
	if (!maps[slot].bytes)
		return;
	uint32_t start = part % maps[slot].length;

	length = length < maps[slot].length - start ? length : maps[slot].length - start;
	memset(buffer, 0, length);
	say(" %u at %u", length, start);
	touch(copy_out, maps[slot].bytes + start, length);
	say(" %08x", hash_of(buffer, length));
}

static void copy_in(uint8_t *bytes, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		((volatile uint8_t *)bytes)[i] = buffer[i];
}

/* How much of a mapping from `start` on may be written: up to the end of the file. Of what is
 * written after it, in its last page, nothing is promised. In the pages after that it is a fault.
 */
static uint32_t may_write(uint32_t slot, uint32_t start)
{
	struct stat status = { 0 };
	off_t place = maps[slot].offset + start;

	fstat(maps[slot].file, &status);
	if (place < status.st_size)
		return status.st_size - place;
	return place < (status.st_size + PAGE - 1) / PAGE * PAGE ? 0 : PAGE;
}

void write_map(void)
{
	uint32_t slot = below(MAPS), length = any_length(), part = below(BUFFER), most;

	say("poke %u", slot);
	if (!maps[slot].bytes)
		return;
	uint32_t start = part % maps[slot].length;

	length = length < maps[slot].length - start ? length : maps[slot].length - start;
	most = may_write(slot, start);
	length = length < most ? length : most;
	fill(buffer, length);
	say(" %u at %u", length, start);
	touch(copy_in, maps[slot].bytes + start, length);
}

void save_map(void)
{
	uint32_t slot = below(MAPS);
	bool waits = one_in(2);

	say("msync %u %s", slot, waits ? "SYNC" : "ASYNC");
	say_result(msync(maps[slot].bytes, maps[slot].bytes ? maps[slot].length : 0,
			 waits ? MS_SYNC : MS_ASYNC));
}

void unmap(void)
{
	uint32_t slot = below(MAPS);

	say("munmap %u", slot);
	remove_map(slot);
}
