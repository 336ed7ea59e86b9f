/*
 * The auxiliary vector's entries that Linux's C libraries read: the program headers, user and
 * group, sixteen random bytes. getauxval(3); the core's own are in kernel/process/exec_stack.c.
 */
#include <cpuid.h>

#include "fs/linux/devices.h"
#include "kernel/abi/auxv_library.h"
#include "kernel/process/exec_stack.h"
#include "kernel/syscall/sysenter.h"
#include "mm/space.h"

#define CLOCK_TICKS  100 /* in a second, as times() counts */
#define RANDOM_WORDS 2

/* Where the program headers are in memory: in the segment that loads their part of the file. ld.so
 * and static position-independent programs find themselves by them. 0: nowhere. */
static uint32_t headers_address(const struct elf_image *image)
{
	uint32_t phoff = image->header.phoff;
	const struct elf_program_header *each = (const void *)&image->beginning[phoff];

	for (unsigned i = 0; i < image->header.phnum; i++, each++)
		if (each->type == ELF_SEGMENT_LOAD && each->offset <= phoff &&
		    phoff < each->offset + each->filesz)
			return each->vaddr + image->bias + phoff - each->offset;
	return 0;
}

/* EDX of CPUID's leaf 1 (Intel SDM volume 2), which Linux passes on as it is. */
static uint32_t processor_features(void)
{
	uint32_t eax, ebx, ecx, edx;

	__cpuid(1, eax, ebx, ecx, edx);
	return edx;
}

/* Strings and random bytes (for a stack protector's and pointer guard's secrets) go on the stack,
 * and the entries have their addresses. Nobody is anything but root, and no program is more trusted
 * than its caller (AT_SECURE). */
void exec_tell_more(struct exec_stack *stack, const struct elf_image *image)
{
	static const char platform[] = "i686";
	const uint64_t random[RANDOM_WORDS] = { device_random(), device_random() };

	exec_push(stack, platform, sizeof(platform));
	exec_tell(stack, AT_PLATFORM, stack->pointer);
	exec_push(stack, random, sizeof(random));
	exec_tell(stack, AT_RANDOM, stack->pointer);
	exec_tell(stack, AT_PHDR, headers_address(image));
	exec_tell(stack, AT_PHENT, sizeof(struct elf_program_header));
	exec_tell(stack, AT_PHNUM, image->header.phnum);
	exec_tell(stack, AT_ENTRY, elf_entry(image));
	exec_tell(stack, AT_BASE, image->library);
	exec_tell(stack, AT_CLKTCK, CLOCK_TICKS);
	if (sysenter_is_there())
		exec_tell(stack, AT_SYSINFO_EHDR, SPACE_SHARED);
	exec_tell(stack, AT_HWCAP, processor_features());
	static const uint8_t zeros[] = { AT_FLAGS, AT_UID, AT_EUID, AT_GID, AT_EGID, AT_SECURE };

	for (unsigned i = 0; i < sizeof(zeros); i++)
		exec_tell(stack, zeros[i], 0);
}
