/* Places the kernel's ELF segments. It uses no hardware, so tests run it on the host, too. */
#pragma once

#include <stdint.h>

/*
 * Where segments may go: physical addresses from start up to (not including) end. The file image
 * itself must be outside.
 */
struct load_area {
	uint32_t start;
	uint32_t end;
	uint8_t *memory; /* how to reach physical address 0 from here: NULL in the loader */
};

/*
 * Checks the ELF executable of `bytes` bytes at file and copies each PT_LOAD segment to its
 * physical address; the bytes from p_filesz up to p_memsz are zeroed. Nothing is written before
 * everything has been checked. Returns NULL and the entry point in *entry, or a sentence that says
 * what is wrong; then *entry means nothing.
 */
const char *load_elf(const uint8_t *file, uint32_t bytes, const struct load_area *area,
		     uint32_t *entry);
