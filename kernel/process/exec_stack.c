/* The stack that a new program finds: the number of arguments, pointers to them, pointers to the
 * environment, the auxiliary vector, and behind them, higher up, what all those point to. */
#include "kernel/process/exec_stack.h"

#include <cpuid.h>

#include "fs/devices.h"
#include "kernel/abi/auxv.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/syscall/sysenter.h"
#include "kernel/process/process.h"
#include "mm/user_copy.h"
#include "mm/page_alloc.h"
#include "mm/space.h"

#define VECTOR_ENTRIES	24
#define CLOCK_TICKS	100 /* in a second, as times() counts */
#define RANDOM_BYTES	16
#define STACK_ALIGNMENT 16u

struct auxiliary {
	uint32_t type, value;
};

/* A stack under construction: it grows down, and remembers whether a write has failed. */
struct stack {
	uint32_t pointer;
	uint32_t failed; /* bytes that could not be written */
};

static void push(struct stack *stack, const void *bytes, uint32_t length)
{
	stack->pointer -= length;
	stack->failed |= copy_to_user(stack->pointer, bytes, length);
}

static void push_word(struct stack *stack, uint32_t word)
{
	push(stack, &word, sizeof(word));
}

static uint32_t push_text(struct stack *stack, const char *text)
{
	push(stack, text, strlen(text) + 1);
	return stack->pointer;
}

static uint32_t push_random(struct stack *stack)
{
	uint64_t words[RANDOM_BYTES / 8];

	for (unsigned i = 0; i < RANDOM_BYTES / 8; i++)
		words[i] = device_random();
	push(stack, words, sizeof(words));
	return stack->pointer;
}

static uint32_t processor_features(void)
{
	uint32_t eax, ebx, ecx, edx;

	__cpuid(1, eax, ebx, ecx, edx);
	return edx;
}

/* Pushes the pointers to count strings that lie at address, and a null pointer behind the last. */
static uint32_t push_pointers(struct stack *stack, const char *text, uint32_t count,
			      uint32_t address)
{
	stack->pointer -= (count + 1) * sizeof(uint32_t);
	struct buffer buffer = buffer_of_user(stack->pointer, (count + 1) * sizeof(uint32_t));

	for (uint32_t i = 0; i < count; i++) {
		uint32_t size = strlen(text) + 1;

		stack->failed |= buffer_put(&buffer, &address, sizeof(address)) < 0;
		address += size;
		text += size;
	}
	stack->failed |= buffer_put_zeros(&buffer, sizeof(address)) < 0;
	return address;
}

/* Where the environment's text begins. */
static const char *environment_of(const struct exec_strings *strings)
{
	const char *text = strings->text;

	for (uint32_t i = 0; i < strings->arguments; i++)
		text += strlen(text) + 1;
	return text;
}

/* Pushes argc and the two arrays of pointers, for strings that lie at address. */
static void push_arrays(struct stack *stack, const struct exec_strings *strings, uint32_t address)
{
	const char *environment = environment_of(strings);

	push_pointers(stack, environment, strings->environment,
		      address + (environment - strings->text));
	push_pointers(stack, strings->text, strings->arguments, address);
	push_word(stack, strings->arguments);
}

/* Pads so that the stack pointer is aligned once length more bytes have been pushed. */
static void align(struct stack *stack, uint32_t length)
{
	stack->pointer = ((stack->pointer - length) & -STACK_ALIGNMENT) + length;
}

static uint32_t add_system_page(struct auxiliary *vector)
{
	if (!sysenter_is_there())
		return 0;
	vector[0] = (struct auxiliary){ AT_SYSINFO, shared_vsyscall };
	vector[1] = (struct auxiliary){ AT_SYSINFO_EHDR, SPACE_SHARED };
	return 2;
}

int exec_build_stack(const struct elf_image *image, const struct exec_strings *strings,
		     const char *path)
{
	struct stack stack = { .pointer = space_stack_top(current->space) - sizeof(uint32_t) };
	uint32_t name = push_text(&stack, path);
	uint32_t platform = push_text(&stack, "i686");

	current->process->strings_end = stack.pointer;
	push(&stack, strings->text, strings->length);
	uint32_t texts = stack.pointer;

	current->process->arguments = texts;
	current->process->environment = texts + (environment_of(strings) - strings->text);
	uint32_t random = push_random(&stack);
	struct auxiliary vector[VECTOR_ENTRIES] = {
		{ AT_PHDR, elf_headers_address(image) },
		{ AT_PHENT, sizeof(struct elf_program_header) },
		{ AT_PHNUM, image->header.phnum },
		{ AT_PAGESZ, PAGE_SIZE },
		{ AT_BASE, 0 },
		{ AT_FLAGS, 0 },
		{ AT_ENTRY, elf_entry(image) },
		{ AT_UID, 0 },
		{ AT_EUID, 0 },
		{ AT_GID, 0 },
		{ AT_EGID, 0 },
		{ AT_SECURE, 0 },
		{ AT_CLKTCK, CLOCK_TICKS },
		{ AT_HWCAP, processor_features() },
		{ AT_PLATFORM, platform },
		{ AT_RANDOM, random },
		{ AT_EXECFN, name },
	};
	uint32_t entries = 17;

	entries += add_system_page(&vector[entries]);
	vector[entries++] = (struct auxiliary){ AT_NULL, 0 };

	uint32_t pointers = strings->arguments + strings->environment + 3;

	align(&stack, entries * sizeof(struct auxiliary) + pointers * sizeof(uint32_t));
	push(&stack, vector, entries * sizeof(struct auxiliary));
	push_arrays(&stack, strings, texts);
	return stack.failed ? -EFAULT : (int32_t)stack.pointer;
}
