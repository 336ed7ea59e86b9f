/*
 * ELF executables, put into a space that is one slot: memory is mapped, and the file is read into
 * it.
 *
 * The current task loads into its own space, and sleeps while the file is read. From lesson 6 on
 * kernel/process/exec_load_areas.c does the same without reading.
 */
#include "kernel/lib/errno.h"
#include "kernel/process/exec_elf.h"
#include "kernel/task/task.h"
#include "mm/page_alloc.h"
#include "mm/space.h"

int elf_check_room(struct elf_image *image)
{
	for (unsigned i = 0; i < image->header.phnum; i++) {
		const struct elf_program_header *each = elf_segment(image, i);

		if (elf_is_loaded(each) && !space_can_hold(each->vaddr + image->bias, each->memsz))
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
int elf_load(struct elf_image *image)
{
	uint32_t mapped_end = 0;

	for (unsigned i = 0; i < image->header.phnum; i++) {
		const struct elf_program_header *each = elf_segment(image, i);
		uint32_t start = each->vaddr + image->bias;

		if (!elf_is_loaded(each))
			continue;
		int error = map(each, start, mapped_end);

		if (!error)
			error = read_segment(image, each);
		if (error)
			return error;
		if (whole_pages(start + each->memsz) > mapped_end)
			mapped_end = whole_pages(start + each->memsz);
	}
	space_set_heap(current->space, mapped_end);
	image->start = elf_entry(image);
	return 0;
}
