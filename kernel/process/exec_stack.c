/*
 * The stack that a new program finds, from its pointer up:
 *
 *	0x083ffeb0	2			the number of arguments
 *	0x083ffeb4	0x083fffc0 0x083fffc3 0	pointers to them
 *	0x083ffec0	0x083fffc8 0		pointers to the environment
 *	0x083ffec8	AT_PAGESZ 4096 ...	the auxiliary vector, up to AT_NULL: pairs of
 *						a type and what the kernel says of it
 *	0x083fffc0	"ls\0/bin\0HOME=/\0"	what all those point to
 *
 * It is built from the top down, so that every address is known before it is written. The memory
 * already belongs to the new program, so it is written by copies that can fail.
 */
#include "kernel/process/exec_stack.h"

#include "kernel/abi/auxv.h"
#include "kernel/lib/string.h"
#include "kernel/syscall/sysenter.h"
#include "kernel/process/process.h"
#include "mm/page_alloc.h"
#include "mm/space.h"

#define STACK_ALIGNMENT 16u

/* The stack grows down. A failure is remembered, and checked once, at the end. */
void exec_push(struct exec_stack *stack, const void *bytes, uint32_t length)
{
	stack->pointer -= length;
	stack->failed |= copy_to_user(stack->pointer, bytes, length);
}

/* One entry of the auxiliary vector. */
void exec_tell(struct exec_stack *stack, uint32_t type, uint32_t value)
{
	stack->auxiliary[stack->entries].type = type;
	stack->auxiliary[stack->entries++].value = value;
}

/* Pushes the pointers to count strings at address, and a null pointer after the last. */
static void push_pointers(struct exec_stack *stack, const char *text, uint32_t count,
			  uint32_t address)
{
	uint32_t at = stack->pointer -= (count + 1) * sizeof(uint32_t);

	for (; count > 0; count--, at += sizeof(address)) {
		uint32_t size = strlen(text) + 1;

		stack->failed |= copy_to_user(at, &address, sizeof(address));
		address += size;
		text += size;
	}
	stack->failed |= clear_user(at, sizeof(address));
}

/* Where the environment's text begins. */
static const char *environment_of(const struct exec_strings *strings)
{
	const char *text = strings->text;

	for (uint32_t i = 0; i < strings->arguments; i++)
		text += strlen(text) + 1;
	return text;
}

/* Pushes argc and the two arrays of pointers, for strings at address. */
static void push_arrays(struct exec_stack *stack, const struct exec_strings *strings,
			uint32_t address)
{
	const char *environment = environment_of(strings);

	push_pointers(stack, environment, strings->environment,
		      address + (environment - strings->text));
	push_pointers(stack, strings->text, strings->arguments, address);
	exec_push(stack, &strings->arguments, sizeof(uint32_t));
}

/* Fills in the auxiliary vector. `path` is the user address of the program's path. */
static void put_auxiliary_vector(struct exec_stack *stack, const struct elf_image *image,
				 uint32_t path)
{
	exec_tell(stack, AT_EXECFN, path);
	exec_tell(stack, AT_PAGESZ, PAGE_SIZE);
	if (sysenter_is_there())
		exec_tell(stack, AT_SYSINFO, shared_vsyscall);
	if (exec_tell_more)
		exec_tell_more(stack, image);
	exec_tell(stack, AT_NULL, 0);
}

/* Strings first, so that their addresses are known; then vector, pointers, count, with padding
 * before them, so that the stack pointer is aligned at the end. */
int exec_build_stack(const struct elf_image *image, const char *path,
		     const struct exec_strings *strings, uint32_t *pointer)
{
	struct process *process = current->process;
	struct exec_stack stack;

	stack.pointer = space_stack_top(current->space) - sizeof(uint32_t);
	stack.failed = stack.entries = 0;
	exec_push(&stack, path, strlen(path) + 1);
	process->strings_end = stack.pointer;
	exec_push(&stack, strings->text, strings->length);
	process->arguments = stack.pointer;
	process->environment = stack.pointer + (environment_of(strings) - strings->text);
	put_auxiliary_vector(&stack, image, process->strings_end);

	uint32_t size = stack.entries * sizeof(stack.auxiliary[0]);
	uint32_t words = strings->arguments + strings->environment + 3;
	uint32_t length = size + words * sizeof(uint32_t);

	stack.pointer = ((stack.pointer - length) & -STACK_ALIGNMENT) + length;
	exec_push(&stack, stack.auxiliary, size);
	push_arrays(&stack, strings, process->arguments);
	*pointer = stack.pointer;
	return stack.failed ? -EFAULT : 0;
}
