/*
 * ELF executables for the i386: checked, and put into a space. Tool Interface Standard, ELF 1.2.
 *
 * An executable is a header, program headers, and the bytes that these tell of. A segment of type
 * LOAD says: so many bytes (filesz) from this place of the file (offset) go to this address
 * (vaddr); from there up to memsz all is zero. Position-independent programs are told from 0 on,
 * and a bias is added to every address:
 *
 *	LOAD  offset 0x1000  vaddr 0x08049000  filesz 0x500  memsz 0x800
 *		0x08049000 - 0x080494ff		from the file
 *		0x08049500 - 0x080497ff		zeros: .bss
 *
 * Nothing is believed: what elf_check has let through, elf_load may use without another look. The
 * current task loads into its own space, and sleeps while the file is read.
 */
#include "kernel/process/exec_elf.h"

#include <stdbool.h>

#include "kernel/lib/errno.h"
#include "kernel/task/task.h"
#include "mm/page_alloc.h"
#include "mm/space.h"

#define TYPE_SHARED	  3 /* position-independent */
#define SEGMENT_INTERPRET 3
#define LINK_ADDRESS	  0x08048000u /* where position-independent programs go */

/* has_segments has made sure that the table is in the part of the file that was read. */
static const struct elf_program_header *segment(const struct elf_image *image, unsigned index)
{
	const struct elf_program_header *segments =
	    (const void *)&image->beginning[image->header.phoff];

	return &segments[index];
}

/* A segment without memory has no address that means anything. */
static bool is_loaded(const struct elf_program_header *segment)
{
	return segment->type == ELF_SEGMENT_LOAD && segment->memsz > 0;
}

/* TYPE_SHARED is also what a position-independent program is. */
static bool is_for_this_machine(const struct elf_header *header)
{
	return header->magic == ELF_MAGIC && header->class == ELF_CLASS_32 &&
	       header->data == ELF_DATA_LITTLE && header->machine == ELF_MACHINE_386 &&
	       (header->type == ELF_TYPE_EXECUTABLE || header->type == TYPE_SHARED);
}

/* EXERCISE 3.6 (programs that mean harm, part 1): no number in the file can be trusted, and
   no code after elf_check checks again.

   - has_segments: are all program headers inside the part of the file that was read? They must
     have the size of struct elf_program_header, begin at a multiple of 4 bytes, and there must
     be at least one.
   - fits: is the segment, at vaddr + bias, wholly inside [SPACE_START, SPACE_SHARED), and filesz
     at most memsz?
   - elf_check: see the header. A file of TYPE_SHARED is position-independent and goes to
     LINK_ADDRESS; one with an interpreter is not static, so it is refused. Segments that are not
     loaded need not fit; at least one must be loaded.

   Pitfalls: the file may be shorter than an ELF header. Each sum of two numbers from the file
   may wrap around. */
/* SOLUTION 3.6 { */
/* Are the program headers in the beginning that was read? */
static bool has_segments(const struct elf_image *image)
{
	const struct elf_header *header = &image->header;

	return header->phentsize == sizeof(struct elf_program_header) && header->phnum > 0 &&
	       header->phoff % sizeof(uint32_t) == 0 && header->phoff <= image->bytes &&
	       header->phnum * sizeof(struct elf_program_header) <= image->bytes - header->phoff;
}

/* A segment's place must not wrap, nor reach out of user space; and what the file has of it
 * must not be more than it is. */
static bool fits(const struct elf_image *image, const struct elf_program_header *segment)
{
	uint32_t start = segment->vaddr + image->bias;

	return segment->filesz <= segment->memsz && start >= image->bias && start >= SPACE_START &&
	       start < SPACE_SHARED && segment->memsz <= SPACE_SHARED - start;
}

/* Only numbers that were checked here are used later. */
int elf_check(struct elf_image *image)
{
	unsigned loaded = 0;

	if (image->bytes < sizeof(image->header) || !is_for_this_machine(&image->header) ||
	    !has_segments(image))
		return -ENOEXEC;
	image->bias = image->header.type == TYPE_SHARED ? LINK_ADDRESS : 0;
	for (unsigned i = 0; i < image->header.phnum; i++) {
		const struct elf_program_header *each = segment(image, i);

		if (each->type == SEGMENT_INTERPRET || (is_loaded(each) && !fits(image, each)))
			return -ENOEXEC;
		loaded += is_loaded(each);
	}
	return loaded > 0 ? 0 : -ENOEXEC;
}
/* } SOLUTION 3.6 */

/* A question of lesson 3's spaces; lessons with page tables say yes to everything. */
int elf_check_room(const struct elf_image *image)
{
	for (unsigned i = 0; i < image->header.phnum; i++) {
		const struct elf_program_header *each = segment(image, i);

		if (is_loaded(each) && !space_can_hold(each->vaddr + image->bias, each->memsz))
			return -ENOMEM;
	}
	return 0;
}

/* Two segments may share a page: what is mapped already stays. */
static int map(const struct elf_program_header *segment, uint32_t start, uint32_t mapped_end)
{
	uint32_t end = start + segment->memsz;

	start &= -PAGE_SIZE;
	if (start < mapped_end)
		start = mapped_end;
	if (end <= start)
		return 0;
	return space_map(current->space, start, end - start,
			 SPACE_READ | SPACE_WRITE | SPACE_EXECUTE);
}

/* Straight into the program's memory; a file that is shorter than it says is no program. */
static int read_segment(const struct elf_image *image, const struct elf_program_header *segment)
{
	struct buffer buffer = buffer_of_user(segment->vaddr + image->bias, segment->filesz);
	uint64_t offset = segment->offset;

	while (buffer.length > 0) {
		int count = file_read_at(image->file, &buffer, offset);

		if (count <= 0)
			return count < 0 ? count : -ENOEXEC;
		offset += count;
	}
	return 0;
}

/* The segments are in ascending order, as the gABI demands. The heap begins on the page after the
 * last. */
int elf_load(const struct elf_image *image)
{
	uint32_t mapped_end = 0, end = 0;

	for (unsigned i = 0; i < image->header.phnum; i++) {
		const struct elf_program_header *each = segment(image, i);
		uint32_t start = each->vaddr + image->bias;

		if (!is_loaded(each))
			continue;
		int error = map(each, start, mapped_end);

		if (!error)
			error = read_segment(image, each);
		if (error)
			return error;
		if (start + each->memsz > end)
			end = start + each->memsz;
		mapped_end = whole_pages(end);
	}
	space_set_heap(current->space, mapped_end);
	return 0;
}

uint32_t elf_entry(const struct elf_image *image)
{
	return image->header.entry + image->bias;
}
