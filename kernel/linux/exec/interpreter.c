/*
 * Dynamically linked programs: the interpreter that one names, ld.so, is put into its space, too.
 *
 *	program		PT_INTERP "/lib/ld-linux.so.2"	at its own address, or at LINK_ADDRESS
 *	interpreter	a position-independent ELF	as high as mmap would put it; it begins
 *
 * It finds the program by the auxiliary vector (AT_PHDR, AT_ENTRY), and itself by AT_BASE
 * (kernel/linux/exec/auxiliary.c). Called by exec, for the current task; it sleeps.
 */

#include "kernel/process/exec_elf.h"
#include "mm/page_alloc.h"
#include "mm/space_layout.h"

/* An interpreter that is to be loaded: two pages. */
struct library {
	char name[PAGE_SIZE];
	struct elf_image image;
};

/* The segment that has its name; of several the first one. NULL: none. */
static const struct elf_program_header *find_interpreter(const struct elf_image *image)
{
	for (unsigned i = 0; i < image->header.phnum; i++)
		if (elf_segment(image, i)->type == ELF_SEGMENT_INTERPRETER)
			return elf_segment(image, i);
	return NULL;
}

/* The name, from wherever it is in the file, with its NUL. Errors are Linux's: -ENOEXEC for what is
 * a name, -EIO for a file that ends before. */
static int read_name(const struct elf_image *image, const struct elf_program_header *segment,
		     char name[PAGE_SIZE])
{
	uint32_t length = segment->filesz;
	struct buffer buffer = buffer_of_kernel(name, length);

	if (length < 2 || length > PAGE_SIZE)
		return -ENOEXEC;
	int count = file_read_at(image->file, &buffer, segment->offset);

	if (count < 0 || buffer.length > 0)
		return count < 0 ? count : -EIO;
	return name[length - 1] == '\0' ? 0 : -ENOEXEC;
}

/* What is added to its addresses, so that it ends where the highest mapping may end. */
static uint32_t high_place(const struct elf_image *library)
{
	uint32_t end = 0;

	for (unsigned i = 0; i < library->header.phnum; i++) {
		const struct elf_program_header *each = elf_segment(library, i);

		if (elf_is_loaded(each) && each->vaddr + each->memsz > end)
			end = each->vaddr + each->memsz;
	}
	return (MAP_HIGHEST - end) & -PAGE_SIZE;
}

/* Opens the interpreter and checks it. On success the file is the caller's. */
static int open_library(const char *name, struct elf_image *library)
{
	int error = exec_open_image(name, library);

	if (error)
		return error;
	if (library->bytes < sizeof(library->header))
		error = -EIO;
	else if (elf_check(library) != 0)
		error = -ELIBBAD;
	if (!error && library->bias)
		library->bias = high_place(library);
	error = error ? error : elf_has_room(library);
	if (error)
		file_release(library->file);
	return error;
}

int elf_interpreters(struct elf_image *image, int (*action)(struct elf_image *image))
{
	const struct elf_program_header *segment = find_interpreter(image);
	struct library *library = segment ? page_alloc(1) : NULL;

	if (!library)
		return segment ? -ENOMEM : 0;
	int error = read_name(image, segment, library->name);

	if (!error)
		error = open_library(library->name, &library->image);
	if (!error) {
		error = action ? action(&library->image) : 0;
		image->start = elf_entry(&library->image);
		image->library = library->image.bias;
		file_release(library->image.file);
	}
	page_free(library, 1);
	return error;
}
