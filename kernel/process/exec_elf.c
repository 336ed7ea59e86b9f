/*
 * Checks ELF executables for the i386. Tool Interface Standard, ELF 1.2.
 *
 * An executable is a header, program headers, and the bytes that these describe. A segment of type
 * LOAD says: `filesz` bytes at `offset` of the file go to the address `vaddr`; the rest, up to
 * `memsz` bytes, is zero. The addresses of position-independent programs begin at 0, and a bias is
 * added to each of them:
 *
 *	LOAD  offset 0x1000  vaddr 0x08049000  filesz 0x500  memsz 0x800
 *		0x08049000 - 0x080494ff		from the file
 *		0x08049500 - 0x080497ff		zeros: .bss
 *
 * Nothing in the file is trusted. What elf_check accepts, elf_load may use without another check
 * (kernel/process/exec_load.c).
 */
#include "kernel/process/exec_elf.h"

#include "mm/space.h"

#define TYPE_SHARED  3		 /* position-independent */
#define LINK_ADDRESS 0x08048000u /* where position-independent programs go */

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
     LINK_ADDRESS; one with an interpreter is not static, so it is refused (not from lesson 6
     on: elf_interpreters says so). Segments that are not loaded need not fit; at least one
     must be loaded.

   Pitfalls: the file may be shorter than an ELF header. Each sum of two numbers from the file
   may wrap around. */
/* SOLUTION 3.6 { */
/* Are the program headers in the part of the file that was read? */
static bool has_segments(const struct elf_image *image)
{
	const struct elf_header *header = &image->header;

	return header->phentsize == sizeof(struct elf_program_header) && header->phnum > 0 &&
	       header->phoff % sizeof(uint32_t) == 0 && header->phoff <= image->bytes &&
	       header->phnum * sizeof(struct elf_program_header) <= image->bytes - header->phoff;
}

/* A segment must not wrap, nor reach beyond user space; and filesz must not exceed memsz. */
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
		const struct elf_program_header *each = elf_segment(image, i);

		if (each->type == ELF_SEGMENT_INTERPRETER && !elf_interpreters)
			return -ENOEXEC;
		if (elf_is_loaded(each) && !fits(image, each))
			return -ENOEXEC;
		loaded += elf_is_loaded(each);
	}
	return loaded > 0 ? 0 : -ENOEXEC;
}
/* } SOLUTION 3.6 */
