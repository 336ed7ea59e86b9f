/* ELF executables for the i386: what exec needs to know of one, and how it gets into a space. */
#pragma once

#include <stdint.h>

#include "kernel/lib/elf.h"
#include "fs/file.h"

#define ELF_BEGINNING 1024 /* bytes of a file that must contain its program headers */

/* An ELF file that is to be run. */
struct elf_image {
	struct file *file;
	uint32_t bytes; /* of its beginning that are there */
	uint32_t bias;	/* what is added to every address in it: 0 for a fixed program */
	union {
		struct elf_header header;
		uint8_t beginning[ELF_BEGINNING];
	};
};

/* Checks everything that can be checked before the space is changed, and sets the bias. Returns 0,
 * or -ENOEXEC unless it is a static program for the i386 that fits below the kernel. */
int elf_check(struct elf_image *image);

/* Is there room in a space for each segment of a program that elf_check has found to be one?
 * Returns 0 or -ENOMEM. */
int elf_check_room(const struct elf_image *image);

/* Maps the segments into the current task's space, which is empty, and reads them. Sets the heap
 * after them. Returns 0, -ENOMEM, or a negated errno of reading. */
int elf_load(const struct elf_image *image);

/* Where the program begins. */
uint32_t elf_entry(const struct elf_image *image);
