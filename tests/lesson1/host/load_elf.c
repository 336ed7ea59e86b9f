/*
 * Answers questions about boot/load_elf.c on standard input and output, in binary, until the input
 * ends. All numbers are 32 bits.
 *   question: start and end of the load area; length of the file; the file
 *   answer: 1 if it was loaded, else 0; the entry point; length of the sentence; the sentence; then
 *     memory from MARGIN below the area's first page to MARGIN above its last one
 * Memory is POISON before, and nothing outside that window may be touched.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "boot/load_elf.h"
#include "tests/host/question.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define HIDE(from, bytes) __asan_poison_memory_region(from, bytes)
#define SHOW(from, bytes) __asan_unpoison_memory_region(from, bytes)
#else
#define HIDE(from, bytes) ((void)(from), (void)(bytes))
#define SHOW(from, bytes) ((void)(from), (void)(bytes))
#endif

#define PAGE	 4096u
#define MARGIN	 PAGE
#define POISON	 0xcc
#define NO_ENTRY 0x5eed5eedu
#define RESERVED ((size_t)(8ull << 30)) /* any sum of two addresses */

/* Where physical address 0 is. In a program of 32 bits, as in the loader: an address is a pointer.
 */
static uint8_t *memory;

/* With more bits there is room for any sum of two addresses. */
static void reserve_memory(void)
{
	if (sizeof(memory) == sizeof(uint32_t))
		return;
	memory =
	    mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		exit(2);
}

/* Makes the window around the area there, full of POISON. */
static void show_window(uint32_t first, uint32_t length)
{
	void *there = mmap(memory + first, length, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (there != memory + first)
		exit(2);
	memset(there, POISON, length);
}

static int read_number(uint32_t *number)
{
	return fread(number, sizeof(*number), 1, stdin) == 1;
}

static void write_number(uint32_t number)
{
	fwrite(&number, sizeof(number), 1, stdout);
}

/*
 * Where a file is, with a page that cannot be read on both sides. It ends at the second one, but
 * for up to three bytes, since its first byte is aligned to four: the sanitizer sees a read of
 * those and of what is before it, if the code is compiled with it; the rest is seen in any code.
 */
struct room {
	uint8_t *pages;
	size_t length;
	uint8_t *file;
};

static struct room room_for(uint32_t bytes)
{
	size_t inside = (bytes + PAGE - 1) / PAGE * PAGE;
	struct room room = { .length = inside + 2 * PAGE };

	room.pages =
	    mmap(NULL, room.length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room.pages == MAP_FAILED ||
	    (inside > 0 && mprotect(room.pages + PAGE, inside, PROT_READ | PROT_WRITE)))
		exit(2);
	room.file = room.pages + PAGE + inside - (bytes + 3u) / 4 * 4;
	HIDE(room.pages + PAGE, room.file - room.pages - PAGE);
	HIDE(room.file + bytes, room.pages + room.length - PAGE - room.file - bytes);
	return room;
}

static void leave_room(const struct room *room)
{
	SHOW(room->pages, room->length);
	munmap(room->pages, room->length);
}

static void answer(const struct load_area *area, const uint8_t *file, uint32_t bytes)
{
	uint32_t first = area->start / PAGE * PAGE - MARGIN;
	uint32_t length = (area->end + PAGE - 1) / PAGE * PAGE + MARGIN - first;
	uint32_t entry = NO_ENTRY;

	show_window(first, length);
	const char *wrong = load_elf(file, bytes, area, &entry);

	write_number(!wrong);
	write_number(entry);
	write_number(wrong ? strlen(wrong) : 0);
	fputs(wrong ? wrong : "", stdout);
	fwrite(memory + first, length, 1, stdout);
	mprotect(memory + first, length, PROT_NONE);
}

int main(void)
{
	struct load_area area;
	uint32_t bytes;

	reserve_memory();
	area.memory = memory;
	while (read_number(&area.start) && read_number(&area.end) && read_number(&bytes)) {
		struct room room = room_for(bytes);

		if (fread(room.file, 1, bytes, stdin) != bytes)
			return 2;
		question_begins();
		answer(&area, room.file, bytes);
		leave_room(&room);
	}
	return 0;
}
