/* Makes the shared page a shared library in memory, for Linux's C libraries. */
#include "kernel/lib/startup.h"
#include "kernel/lib/string.h"
#include "kernel/syscall/sysenter.h"

/* ELF 1.2, book I: a symbol. */
struct elf_symbol {
	uint32_t name, value, size;
	uint8_t information, other;
	uint16_t section;
};

/* In kernel/linux/exec/shared_page_elf.asm: what belongs to the beginning of the page, and in it
 * the symbol of the call. */
extern const uint8_t shared_page_elf[], shared_page_elf_end[];
extern const uint8_t shared_page_call[];

static void shared_page_describe(void)
{
	struct elf_symbol *call = (void *)&shared_page[shared_page_call - shared_page_elf];

	memcpy(shared_page, shared_page_elf, shared_page_elf_end - shared_page_elf);
	call->value = shared_vsyscall;
	call->size = shared_vsyscall_end - shared_vsyscall;
}
STARTUP(shared_page_describe)
