/*
 * An address space: what one task sees below the kernel. Up to lesson 5 mm/space_slot.c
 * implements it: one 4 MiB page at SPACE_START holds code, data, heap and stack.
 *
 * Addresses and lengths are in bytes; a range is rounded out to whole pages. Up to lesson 5 no
 * function here sleeps; from lesson 6 on one that unmaps memory may, because the last area of a
 * file writes it back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct space;

#define SPACE_START  0x08000000u /* programs for Linux are linked 288 KiB further */
#define SPACE_SHARED 0xbffff000u /* a page that all spaces have, read-only: space_share */

#define SPACE_STACK (256u << 10) /* bytes of a program's stack */

/* Bits of protection, as in Linux's mmap. */
#define SPACE_READ	 1u
#define SPACE_WRITE	 2u
#define SPACE_EXECUTE	 4u
#define SPACE_PROTECTION 7u /* all three */

/* Maps this page at SPACE_SHARED in every space. Called once, before there is a space. */
void space_share(const void *page);

/* A new space with nothing in it but the stack, or NULL without memory. */
struct space *space_create(void);

/* A space with the same contents, or NULL without memory. */
struct space *space_copy(struct space *space);

/* Makes the space as it was when it was new. */
void space_clear(struct space *space);

/* Frees the space and its memory. It must not be the one in use. */
void space_destroy(struct space *space);

/* Loads this space (CR3); NULL: only the kernel's part. */
void space_use(const struct space *space);

/* Maps zeroed memory in place of what was mapped there. Returns 0, or -ENOMEM if the range is not
 * within the space's room for programs, or there is no memory for it. */
int space_map(struct space *space, uint32_t address, uint32_t length, unsigned protection);

/* Could an empty space have a segment in this range? */
bool space_can_hold(uint32_t address, uint32_t length);

/* Is the range within the room for programs, and is nothing mapped there? */
bool space_is_free(const struct space *space, uint32_t address, uint32_t length);

/* Where the heap begins: after the program. Called once, by exec. */
void space_set_heap(struct space *space, uint32_t address);

/* Moves the end of the heap, as Linux's brk: returns the new end, or the old one if that is not
 * possible. New memory is zero. */
uint32_t space_set_break(struct space *space, uint32_t address);

/* The first address after the stack. */
uint32_t space_stack_top(const struct space *space);
