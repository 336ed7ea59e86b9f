/*
 * Memory of ring 3, seen from the kernel.
 *
 * The range is checked against the border of the kernel; what is mapped there is left to the
 * processor. A copy that faults goes on at a place that the linker has collected in a table: no
 * look at the page tables, and so nothing that may change between the look and the use.
 */
#include "mm/user_copy.h"

#include "kernel/lib/errno.h"
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

/* EXERCISE 3.3 (user memory): a pointer from ring 3 may be anything.
   1. user_range_ok: the sum of address and length may wrap.
   2. copy_bytes and zero_bytes: one instruction that may fault, in the table of fix-ups; what it
   leaves in ECX is what is left to do. Words first is faster; after a fault the rest is done byte
   by byte, so that the count is right to the byte.
   3. fix_up: a page fault of the kernel at an instruction of the table goes on where the table
   says.
   4. string_from_user: byte by byte, and nothing behind the NUL is touched: it may be the last byte
   of the last page. */
/* SOLUTION 3.3 { */
bool user_range_ok(uint32_t address, uint32_t length)
{
	return address <= KERNEL_BASE && length <= KERNEL_BASE - address;
}

/* Returns how many bytes were left when it came to one that could not be copied. */
static uint32_t copy_bytes(void *to, const void *from, uint32_t length)
{
	uint32_t tail = length % 4, count = length / 4;

	__asm__ volatile("1: rep movsl\n\t"
			 "2: leal (%3, %2, 4), %2\n\t" /* after a fault: what the words left, too */
			 "3: rep movsb\n\t"
			 "4:\n\t" FIXUP(1b, 2b) FIXUP(3b, 4b)
			 : "+D"(to), "+S"(from), "+c"(count)
			 : "r"(tail)
			 : "memory");
	return count;
}

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

int string_from_user(char *to, uint32_t from, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		if (copy_from_user(to + i, from + i, 1) != 0)
			return -EFAULT;
		if (to[i] == '\0')
			return i;
	}
	return -ENAMETOOLONG;
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

static uint32_t at_most(const struct buffer *buffer, uint32_t length)
{
	return length < buffer->length ? length : buffer->length;
}

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
