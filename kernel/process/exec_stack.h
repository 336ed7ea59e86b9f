/* The stack that a new program finds. */
#pragma once

#include <stdint.h>

#include "kernel/process/exec.h"
#include "kernel/process/exec_elf.h"

/*
 * Writes strings, random bytes, auxiliary vector, environment, arguments and their number onto the
 * current task's stack, as the System V ABI for the i386 (3-27) and Linux have it. Returns the
 * stack pointer, a multiple of 16, or -EFAULT.
 */
int exec_build_stack(const struct elf_image *image, const struct exec_strings *strings,
		     const char *path);
