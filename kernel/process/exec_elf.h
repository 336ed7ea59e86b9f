/* ELF executables for the i386: what exec needs to know about one, and how it is loaded into a
 * space. */
#pragma once

#include "kernel/lib/elf.h"
#include "fs/file.h"

#define ELF_BEGINNING 1024 /* bytes of a file that must contain its program headers */

/* An ELF file that is to be run. */
struct elf_image {
	struct file *file;
	uint32_t bytes; /* bytes of its beginning that were read */
	uint32_t bias;	/* added to every address in it: 0 for a fixed program */
	/* The first instruction of what is loaded: its interpreter's, if it has one. */
	uint32_t start;
	uint32_t library; /* the interpreter's bias; 0: there is none */
	union {
		struct elf_header header;
		uint8_t beginning[ELF_BEGINNING];
	};
};

/* Checks everything that can be checked before the space is changed, and sets the bias. Returns 0,
 * or -ENOEXEC unless it is a program for the i386 that fits below the kernel. */
int elf_check(struct elf_image *image);

/* Does `action` (unless that is NULL) with the interpreter of a program, if it has one; the program
 * begins there then. Returns 0, the action's error, or one of the interpreter's file. Kernels
 * without it, such as those before lesson 6, have only static programs. */
int elf_interpreters(struct elf_image *image, int (*action)(struct elf_image *image)) OPTIONAL;

/* A program header: elf_check has made sure that the table is in the part that was read. */
static inline const struct elf_program_header *elf_segment(const struct elf_image *image,
							   unsigned index)
{
	return (const struct elf_program_header *)&image->beginning[image->header.phoff] + index;
}

/* The address of a segment without memory means nothing. */
static inline bool elf_is_loaded(const struct elf_program_header *segment)
{
	return segment->type == ELF_SEGMENT_LOAD && segment->memsz > 0;
}

/* Is there room in a space for each segment of a program that elf_check has accepted? And for those
 * of its interpreter? Both return 0 or -ENOMEM; the second may sleep, and return any error of the
 * interpreter's file. */
int elf_has_room(const struct elf_image *image);
int elf_check_room(struct elf_image *image);

/* Maps pages of zeros for a segment, and reads it. Two segments may share a page: what is mapped
 * already, up to mapped_end, stays. Returns 0, -ENOMEM, or a negated errno of reading. */
int elf_read_segment(const struct elf_image *image, const struct elf_program_header *segment,
		     uint32_t mapped_end);

/* Maps the segments into the current task's space, which is empty, and reads them. Sets the heap
 * after them. Returns 0, -ENOMEM, or a negated errno of reading. */
int elf_load(struct elf_image *image);

/* Where the program begins. */
static inline uint32_t elf_entry(const struct elf_image *image)
{
	return image->header.entry + image->bias;
}

/* Opens a file to be run, and reads its beginning. Returns 0, and image->file is the caller's; or a
 * negated errno. May sleep. */
int exec_open_image(const char *path, struct elf_image *image);
