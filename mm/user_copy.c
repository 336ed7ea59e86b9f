/*
 * User memory, seen from the kernel: copies that may fault and say how far they got.
 *
 * There are two questions about a user pointer. Is it below the kernel? A comparison before the
 * copy answers that. Is anything mapped there? Only the processor knows, at the moment of the
 * access. So the copy just tries: an instruction that may fault is listed in a table, with the
 * place to continue at:
 *
 *	.fixups		fault at	resume at
 *			0xc0103a10	0xc0103a12
 *			0xc0103a16	0xc0103a18	ECX says how much is left
 *
 * A page fault in the kernel at a listed instruction changes EIP and returns; at any other it is a
 * panic. Nothing looks at the page tables in advance, so nothing can change between a check and the
 * use (time of check to time of use).
 *
 * The linker collects the table: each FIXUP adds an entry next to its instruction. Call these
 * functions for a task, with its address space in use; with interrupts enabled or not. Up to lesson
 * 5 they do not sleep.
 */
#include "mm/user_copy.h"

#include "kernel/cpu/memory_layout.h"
#include "kernel/lib/string.h"
#include "kernel/cpu/trap.h"

/* An instruction that may fault, and where to go on then. */
struct fixup {
	uint32_t fault;
	uint32_t resume;
};

extern const struct fixup fixups_start[], fixups_end[];

#define FIXUP(fault, resume)                                                                       \
	".pushsection .fixups, \"a\"\n\t"                                                          \
	".long " #fault ", " #resume "\n\t"                                                        \
	".popsection\n\t"

/* EXERCISE 3.3 (user memory): any 32 bits may arrive as a user pointer.

   - user_range_ok: is [address, address + length) below KERNEL_BASE? The sum may wrap around
     2^32.
   - copy_bytes, zero_bytes: your own helpers: copy or zero in the kernel, and return how many
     bytes were not done when an instruction faulted: exactly, to the byte. A page takes at most
     1,100 instructions, counting each repetition of REP. Each instruction that may fault needs an
     entry in the exception table (FIXUP).
   - user_copy_fix_up: gets the frame of an exception in the kernel. If this is a page fault at
     an instruction of the table, execution resumes where the table says, and the result is true.
     Otherwise false: some other code has a bug, and the kernel reports it.
   - the rest: as in mm/user_copy.h. A range that is not below the kernel is refused without
     touching any of it.

   Pitfalls: the last byte below the kernel is a valid address. No byte beyond the NUL of a
   string may be read: the next page need not be mapped. Another task may change a string while
   you read it, so a byte that was checked must be the byte that was copied. */
/* SOLUTION 3.3 { */
/* An empty range may begin at the limit itself: nothing is touched. */
bool user_range_ok(uint32_t address, uint32_t length)
{
	return address <= KERNEL_BASE && length <= KERNEL_BASE - address;
}

/* Returns how many bytes were left at the first one that could not be copied; 0 is success. */
static uint32_t copy_bytes(void *to, const void *from, uint32_t length)
{
	uint32_t tail = length % 4, count = length / 4;

	__asm__ volatile("1: rep movsl\n\t"
			 "2: leal (%3, %2, 4), %2\n\t" /* after a fault: plus the words left */
			 "3: rep movsb\n\t"
			 "4:\n\t" FIXUP(1b, 2b) FIXUP(3b, 4b)
			 : "+D"(to), "+S"(from), "+c"(count)
			 : "r"(tail)
			 : "memory");
	return count;
}

/* The same with STOS. */
static uint32_t zero_bytes(void *to, uint32_t length)
{
	uint32_t tail = length % 4, count = length / 4;

	__asm__ volatile("1: rep stosl\n\t"
			 "2: leal (%2, %1, 4), %1\n\t"
			 "3: rep stosb\n\t"
			 "4:\n\t" FIXUP(1b, 2b) FIXUP(3b, 4b)
			 : "+D"(to), "+c"(count)
			 : "r"(tail), "a"(0)
			 : "memory");
	return count;
}

/* Asked about every exception of the kernel that has no handler: kernel/cpu/trap.c. */
static bool user_copy_fix_up(struct trap_frame *frame)
{
	if (frame->vector != VECTOR_PAGE_FAULT)
		return false;
	for (const struct fixup *fixup = fixups_start; fixup < fixups_end; fixup++) {
		if (fixup->fault == frame->eip) {
			frame->eip = fixup->resume;
			return true;
		}
	}
	return false;
}

/* A range that reaches into the kernel is refused whole, without touching it. */
uint32_t copy_from_user(void *to, uint32_t from, uint32_t length)
{
	if (!user_range_ok(from, length))
		return length;
	return copy_bytes(to, (const void *)(uintptr_t)from, length);
}

uint32_t copy_to_user(uint32_t to, const void *from, uint32_t length)
{
	if (!user_range_ok(to, length))
		return length;
	return copy_bytes((void *)(uintptr_t)to, from, length);
}

uint32_t clear_user(uint32_t to, uint32_t length)
{
	if (!user_range_ok(to, length))
		return length;
	return zero_bytes((void *)(uintptr_t)to, length);
}

/* Byte by byte, because the one after the NUL may fault. */
int string_from_user(char *to, uint32_t from, uint32_t size)
{
	uint32_t room = from < KERNEL_BASE ? KERNEL_BASE - from : 0;
	uint32_t count = size < room ? size : room, left = count;
	char last = 1;

	if (count > 0)
		__asm__ volatile("1: lodsb; stosb; testb %%al, %%al; loopne 1b\n\t"
				 "2:\n\t" FIXUP(1b, 2b)
				 : "+D"(to), "+S"(from), "+c"(left), "+a"(last)::"memory");
	if (last == '\0')
		return count - left - 1;
	return left > 0 || count < size ? -EFAULT : -ENAMETOOLONG;
}
/* } SOLUTION 3.3 */

void user_copy_initialize(void)
{
	trap_register_fixup(user_copy_fix_up);
}

/* Accounts for length bytes of which left were not moved. */
static int advance(struct buffer *buffer, uint32_t length, uint32_t left)
{
	if (length > 0 && left == length)
		return -EFAULT;
	buffer->address += length - left;
	buffer->length -= length - left;
	return length - left;
}

/* No more than the buffer has left. */
static uint32_t at_most(const struct buffer *buffer, uint32_t length)
{
	return length < buffer->length ? length : buffer->length;
}

/* A fault in the middle is a short count; only a transfer without a single byte is an error, as for
 * read and write. */
int buffer_put(struct buffer *to, const void *from, uint32_t length)
{
	uint32_t left = 0;

	length = at_most(to, length);
	if (to->is_user)
		left = copy_to_user(to->address, from, length);
	else
		memcpy((void *)to->address, from, length);
	return advance(to, length, left);
}

int buffer_take(struct buffer *from, void *to, uint32_t length)
{
	uint32_t left = 0;

	length = at_most(from, length);
	if (from->is_user)
		left = copy_from_user(to, from->address, length);
	else
		memcpy(to, (const void *)from->address, length);
	return advance(from, length, left);
}

int buffer_put_zeros(struct buffer *to, uint32_t length)
{
	uint32_t left = 0;

	length = at_most(to, length);
	if (to->is_user)
		left = clear_user(to->address, length);
	else
		memset((void *)to->address, 0, length);
	return advance(to, length, left);
}
