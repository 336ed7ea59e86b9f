/*
 * Places the kernel's ELF segments: check everything first, then copy.
 *
 * An ELF executable (System V gABI, chapters 4 and 5) says what goes where:
 *
 *	file		offset	filesz	->  memory	paddr		memsz
 *	header		0	52
 *	program headers	52	32 each
 *	segment 0	0x1000	0x8000	->	0x100000	0x8000
 *	segment 1	0x9000	0x400	->	0x108000	0x6000	.bss is the rest
 *
 * The file is untrusted: it may be damaged, or be something else. A 32-bit sum of two of its
 * numbers may wrap: "offset + filesz <= bytes" holds for offset 0xfffff000 and filesz 0x2000.
 *
 * Nothing here calls the BIOS or touches a device: the host's tests run the same code on broken
 * files. Everything is placed by physical address, because paging is off; the virtual addresses do
 * not matter here.
 */
#include "boot/load_elf.h"

#include <stdbool.h>
#include <stddef.h>

#include "kernel/lib/elf.h"

/* EXERCISE 1.4 (the boot loader, part 2): place the kernel's segments. The contract is in
   boot/load_elf.h, the structures are in kernel/lib/elf.h.
   Check everything before you write anything:
   - The header: whole, magic number, 32-bit little-endian x86, an executable; program headers of
     the expected size, at least one, all of them inside the file, at a multiple of four bytes.
   - Each PT_LOAD segment: its bytes are inside the file, filesz is at most memsz. Unless memsz is
     0, its memory is inside the area and does not overlap that of another segment. (ld makes such a
     segment at address 0 when its sections are empty; the other checks still apply to it.) Segments
     of other types are ignored.
   - The entry point is a physical address in the part of a segment that comes from the file.
   Then copy filesz bytes to paddr (area->memory is where physical address 0 is), and zero the rest
   up to memsz.
   Return a different sentence for each mistake: a person will read it on a black screen.
   Pitfalls: a sum of two numbers of the file may wrap. Offsets need not be multiples of 512, and
   two segments may share a sector of the file. The second stage is linked without kernel/lib: it
   has no memcpy and no memset. */
/* SOLUTION 1.4 { */
/* Returns NULL, or what is wrong; so do the other checks. Later steps may rely on the fields
 * checked here. */
static const char *check_header(const struct elf_header *header, uint32_t bytes)
{
	if (bytes < sizeof(*header))
		return "the file is shorter than an ELF header";
	if (header->magic != ELF_MAGIC)
		return "the file does not begin with 0x7f ELF";
	if (header->class != ELF_CLASS_32 || header->data != ELF_DATA_LITTLE ||
	    header->machine != ELF_MACHINE_386)
		return "the file is not for 32-bit x86";
	if (header->type != ELF_TYPE_EXECUTABLE)
		return "the file is not an executable (is it an object file?)";
	if (header->phentsize != sizeof(struct elf_program_header) || header->phnum == 0)
		return "the file has no program headers";
	if (header->phoff % sizeof(uint32_t) != 0)
		return "the program headers are not at a multiple of four";
	if (header->phoff > bytes ||
	    header->phnum * sizeof(struct elf_program_header) > bytes - header->phoff)
		return "the program headers reach beyond the end of the file";
	return NULL;
}

/* check_header has made sure that the table is inside the file, and aligned. */
static const struct elf_program_header *segment(const uint8_t *file, unsigned index)
{
	const struct elf_header *header = (const void *)file;

	return (const void *)(file + header->phoff + index * sizeof(struct elf_program_header));
}

/* One segment by itself: is it inside the file, and inside the area? */
static const char *check_segment(const struct elf_program_header *segment, uint32_t bytes,
				 const struct load_area *area)
{
	if (segment->offset > bytes || segment->filesz > bytes - segment->offset)
		return "a segment reaches beyond the end of the file";
	if (segment->filesz > segment->memsz)
		return "a segment is larger in the file than in memory";
	if (segment->memsz == 0) /* ld makes such a segment at 0 when its sections are empty */
		return NULL;
	if (segment->paddr < area->start)
		return "a segment is below 1 MiB";
	if (segment->paddr > area->end || segment->memsz > area->end - segment->paddr)
		return "a segment does not fit into the memory that is free";
	return NULL;
}

/* Both are inside the area, so these sums cannot wrap. */
static bool overlap(const struct elf_program_header *a, const struct elf_program_header *b)
{
	return a->memsz > 0 && b->memsz > 0 && a->paddr < b->paddr + b->memsz &&
	       b->paddr < a->paddr + a->memsz;
}

/* Checks segment `index` by itself and against those before it. */
static const char *check_loaded_segment(const uint8_t *file, uint32_t bytes, unsigned index,
					const struct load_area *area)
{
	const struct elf_program_header *this = segment(file, index);
	const char *wrong = check_segment(this, bytes, area);

	if (wrong)
		return wrong;
	for (unsigned i = 0; i < index; i++)
		if (segment(file, i)->type == ELF_SEGMENT_LOAD && overlap(segment(file, i), this))
			return "two segments overlap in memory";
	return NULL;
}

/* Only the part that comes from the file: an entry point in .bss would execute zeros. */
static bool contains(const struct elf_program_header *segment, uint32_t address)
{
	return address >= segment->paddr && address - segment->paddr < segment->filesz;
}

/* Types other than PT_LOAD (notes, the stack's flags) take no memory. */
static const char *check_segments(const uint8_t *file, uint32_t bytes, const struct load_area *area)
{
	const struct elf_header *header = (const void *)file;
	bool has_entry = false;

	for (unsigned i = 0; i < header->phnum; i++) {
		if (segment(file, i)->type != ELF_SEGMENT_LOAD)
			continue;
		const char *wrong = check_loaded_segment(file, bytes, i, area);

		if (wrong)
			return wrong;
		has_entry |= contains(segment(file, i), header->entry);
	}
	return has_entry ? NULL : "the entry point is not a physical address inside a segment";
}

/* Byte by byte: the second stage has no memcpy, and a kernel of 100 KiB takes a millisecond. */
static void place(const uint8_t *file, const struct elf_program_header *segment, uint8_t *memory)
{
	uint8_t *to = memory + segment->paddr;
	uint32_t i;

	for (i = 0; i < segment->filesz; i++)
		to[i] = file[segment->offset + i];
	for (; i < segment->memsz; i++)
		to[i] = 0;
}

const char *load_elf(const uint8_t *file, uint32_t bytes, const struct load_area *area,
		     uint32_t *entry)
{
	const struct elf_header *header = (const void *)file;
	const char *wrong = check_header(header, bytes);

	if (!wrong)
		wrong = check_segments(file, bytes, area);
	if (wrong)
		return wrong;
	for (unsigned i = 0; i < header->phnum; i++)
		if (segment(file, i)->type == ELF_SEGMENT_LOAD)
			place(file, segment(file, i), area->memory);
	*entry = header->entry;
	return NULL;
}
/* } SOLUTION 1.4 */
