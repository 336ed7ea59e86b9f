/*
 * Loads ELF executables into a space of areas: nothing is read, and nothing is copied.
 *
 *	file	| page 0 | page 1 | page 2 | page 3   | page 4 ..
 *	space	  text, read and execute    | data, private    | .bss: zeros
 *						    filesz ^   ^ the rest of the page is made zero
 *
 * A segment is an area that maps the file's pages (fs/file_memory.h). The first of them are mapped
 * at once if they are in memory and the program may not write to them; the others when they are
 * touched. Pages that no process writes to exist once, however many run the program. Files that
 * cannot be mapped are read (kernel/process/exec_segment.c).
 *
 * A dynamically linked program names its interpreter, ld.so. Both are put into the space, and the
 * interpreter begins (kernel/linux/exec/interpreter.c).
 */

#include "fs/file_memory.h"
#include "kernel/process/exec_elf.h"
#include "kernel/task/task.h"
#include "mm/area.h"
#include "mm/fault.h"
#include "mm/page_alloc.h"
#include "mm/space.h"

/* ---- one segment ---- */

/* From bits of a program header to bits of SPACE_*: read and execute are the other way round. */
static uint32_t protection_of(const struct elf_program_header *segment)
{
	return (segment->flags & ELF_READ ? SPACE_READ : 0) |
	       (segment->flags & ELF_WRITE ? SPACE_WRITE : 0) |
	       (segment->flags & ELF_EXECUTE ? SPACE_EXECUTE : 0);
}

/* What a program may only read is mapped at once, as far as it is in memory: else it would take a
 * fault for each few pages. */
static void show_beginning(const struct area *form, uint32_t start, uint32_t end)
{
	uint32_t most = start + exec_shown_bytes, table_end = (start & -LARGE_PAGE) + LARGE_PAGE;

	if (!form->object->ops->peek || !form->flags || (form->flags & SPACE_WRITE))
		return;
	end = end < most ? end : most;
	space_show(current->space, area_find(current->space, start), start,
		   end < table_end ? end : table_end);
}

/* The file's pages, and the zeros after them. */
static int show_segment(struct memory_object *object, const struct elf_program_header *segment,
			uint32_t start)
{
	uint32_t first = start & -PAGE_SIZE, file_end = start + segment->filesz;
	uint32_t shown = whole_pages(file_end), end = whole_pages(start + segment->memsz);
	const struct area form = {
		.flags = protection_of(segment),
		.object = object,
		.index = segment->offset >> PAGE_SHIFT,
	};
	int error = 0;

	if (segment->filesz == 0)
		shown = first;
	else if (!(error = area_put(current->space, first, shown, &form)))
		show_beginning(&form, first, shown);
	if (!error && end > shown)
		error = space_map(current->space, shown, end - shown, form.flags);
	if (!error && shown > file_end && segment->memsz > segment->filesz)
		error = clear_user(file_end, shown - file_end) ? -EFAULT : 0;
	return error;
}

/* Only pages of the file that are at the same offset in their page can be mapped; and .bss in the
 * file's last page must be writable. */
static bool can_be_shown(const struct elf_program_header *segment, uint32_t start,
			 uint32_t mapped_end)
{
	return (segment->offset - start) % PAGE_SIZE == 0 && start >= mapped_end &&
	       (segment->filesz == segment->memsz || (segment->flags & ELF_WRITE));
}

static int load_areas(struct elf_image *image)
{
	struct memory_object *object = file_memory(image->file);
	uint32_t mapped_end = 0;
	int error = 0;

	for (unsigned i = 0; i < image->header.phnum && !error; i++) {
		const struct elf_program_header *each = elf_segment(image, i);
		uint32_t start = each->vaddr + image->bias;

		if (!elf_is_loaded(each))
			continue;
		if (object && can_be_shown(each, start, mapped_end))
			error = show_segment(object, each, start);
		else
			error = elf_read_segment(image, each, mapped_end);
		if (whole_pages(start + each->memsz) > mapped_end)
			mapped_end = whole_pages(start + each->memsz);
	}
	if (object)
		object->ops->release(object);
	if (!error)
		space_set_heap(current->space, mapped_end);
	return error;
}

/* ---- the whole program ---- */

/* Before the point of no return: an interpreter that is not there is the caller's error. */
int elf_check_room(struct elf_image *image)
{
	int error = elf_has_room(image);

	return error || !elf_interpreters ? error : elf_interpreters(image, NULL);
}

/* The program last, because the heap comes after it. */
int elf_load(struct elf_image *image)
{
	image->start = elf_entry(image);
	image->library = 0;
	int error = elf_interpreters ? elf_interpreters(image, load_areas) : 0;

	return error ? error : load_areas(image);
}
