/*
 * Loads ELF executables into a space that is one slot: memory is mapped, and the file is read into
 * it.
 *
 * The current task loads into its own space, and sleeps while the file is read. From lesson 6 on
 * kernel/process/exec_load_areas.c does the same without reading.
 */
#include "kernel/process/exec_elf.h"
#include "kernel/task/task.h"
#include "mm/page_alloc.h"
#include "mm/space.h"

int elf_check_room(struct elf_image *image)
{
	return elf_has_room(image);
}

/* The segments are in ascending order, as the gABI demands. The heap begins on the page after the
 * last. */
int elf_load(struct elf_image *image)
{
	uint32_t mapped_end = 0;
	int error = 0;

	for (unsigned i = 0; i < image->header.phnum && !error; i++) {
		const struct elf_program_header *each = elf_segment(image, i);
		uint32_t end = whole_pages(each->vaddr + image->bias + each->memsz);

		if (!elf_is_loaded(each))
			continue;
		error = elf_read_segment(image, each, mapped_end);
		mapped_end = end > mapped_end ? end : mapped_end;
	}
	space_set_heap(current->space, mapped_end);
	image->start = elf_entry(image);
	return error;
}
