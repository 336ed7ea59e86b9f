/* The initial stack of a new program. */
#pragma once

#include "kernel/process/exec_strings.h"
#include "kernel/process/exec_elf.h"

#define EXEC_AUXILIARY 24 /* entries of the auxiliary vector, at most */

/* A stack under construction: it grows down, and remembers whether a write has failed. */
struct exec_stack {
	uint32_t pointer; /* user address */
	uint32_t failed;  /* bytes that could not be written */
	struct {
		uint32_t type, value;
	} auxiliary[EXEC_AUXILIARY];
	uint32_t entries;
};

/* Pushes bytes; afterwards the stack pointer is their address. */
void exec_push(struct exec_stack *stack, const void *bytes, uint32_t length);

/* Adds an entry to the auxiliary vector: kernel/abi/auxv.h. */
void exec_tell(struct exec_stack *stack, uint32_t type, uint32_t value);

/* Adds the entries that only C libraries need: random bytes, the processor's features. It may push
 * as well. */
void exec_tell_more(struct exec_stack *stack, const struct elf_image *image) OPTIONAL;

/*
 * Writes strings, auxiliary vector, environment, arguments and their number onto the current task's
 * stack, as the System V ABI for the i386 (3-27) and Linux have it. *pointer becomes the stack
 * pointer, a multiple of 16. Returns 0 or -EFAULT.
 */
int exec_build_stack(const struct elf_image *image, const char *path,
		     const struct exec_strings *strings, uint32_t *pointer);
