/*
 * Reads segments of ELF executables into a space, for kernel/process/exec_load.c (a space that is
 * one slot) and kernel/process/exec_load_areas.c.
 *
 * A segment that is read gets pages of zeros first. The current task reads into its own space, by
 * copies that may fault, and sleeps meanwhile.
 */
#include "kernel/process/exec_elf.h"
#include "kernel/task/task.h"
#include "mm/page_alloc.h"
#include "mm/space.h"

int elf_has_room(const struct elf_image *image)
{
	for (unsigned i = 0; i < image->header.phnum; i++) {
		const struct elf_program_header *each = elf_segment(image, i);

		if (elf_is_loaded(each) && !space_can_hold(each->vaddr + image->bias, each->memsz))
			return -ENOMEM;
	}
	return 0;
}

/* Straight into the program's memory; a file that is shorter than it says is not a program. */
static int read(const struct elf_image *image, const struct elf_program_header *segment,
		uint32_t start)
{
	struct buffer buffer = buffer_of_user(start, segment->filesz);
	uint64_t offset = segment->offset;

	while (buffer.length > 0) {
		int count = file_read_at(image->file, &buffer, offset);

		if (count <= 0)
			return count < 0 ? count : -ENOEXEC;
		offset += count;
	}
	return 0;
}

int elf_read_segment(const struct elf_image *image, const struct elf_program_header *segment,
		     uint32_t mapped_end)
{
	uint32_t start = segment->vaddr + image->bias, end = start + segment->memsz;
	uint32_t first = start & -PAGE_SIZE, from = first < mapped_end ? mapped_end : first;

	if (end > from && space_map(current->space, from, end - from, SPACE_PROTECTION) != 0)
		return -ENOMEM;
	return read(image, segment, start);
}
