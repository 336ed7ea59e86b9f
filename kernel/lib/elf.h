/* The part of ELF for 32-bit x86 that a loader needs. Tool Interface Standard, ELF 1.2, book I. */
#pragma once

#include <stdint.h>

#define ELF_MAGIC		0x464c457fu /* 0x7f "ELF" */
#define ELF_CLASS_32		1
#define ELF_DATA_LITTLE		1
#define ELF_TYPE_EXECUTABLE	2
#define ELF_MACHINE_386		3
#define ELF_SEGMENT_LOAD	1
#define ELF_SEGMENT_INTERPRETER 3
#define ELF_EXECUTE		1u /* flags of a program header */
#define ELF_WRITE		2u
#define ELF_READ		4u

struct elf_header {
	uint32_t magic;
	uint8_t class;
	uint8_t data;
	uint8_t version;
	uint8_t padding[9];
	uint16_t type;
	uint16_t machine;
	uint32_t file_version;
	uint32_t entry;
	uint32_t phoff; /* file offset of the program headers */
	uint32_t shoff;
	uint32_t flags;
	uint16_t ehsize;
	uint16_t phentsize;
	uint16_t phnum;
	uint16_t shentsize;
	uint16_t shnum;
	uint16_t shstrndx;
};

struct elf_program_header {
	uint32_t type;
	uint32_t offset;
	uint32_t vaddr;
	uint32_t paddr;
	uint32_t filesz;
	uint32_t memsz;
	uint32_t flags;
	uint32_t align;
};
