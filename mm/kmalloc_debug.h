/*
 * kmalloc that tells on those who misuse it.
 *
 * It panics, with the functions that allocated and freed the object by name, on: a write before or
 * beyond an object (found when it is freed, and again when it leaves the quarantine of the last
 * KMALLOC_QUARANTINE that were freed, or by kmalloc_debug_check), a write to a freed object (found
 * when it leaves the quarantine, or by kmalloc_debug_check), an object freed twice, an address
 * inside an object, an address that kmalloc never returned.
 */
#pragma once

#include <stdint.h>

#include "kernel/lib/list.h"

#define KMALLOC_QUARANTINE 64 /* objects: those that were freed last */
#define GUARD_RED	   8  /* bytes of a red zone */

/* What is before each object; a second red zone is after it. Its size is a multiple of 16, as the
 * alignment of the object is. */
struct guard {
	struct list link; /* of an object that is handed out: in kmalloc_live */
	uint32_t size;	  /* what the caller asked for */
	uint32_t owner;	  /* who asked: an address in the caller's code */
	uint32_t freer;	  /* who freed it; 0: nobody has */
	uint32_t serial;  /* how many allocations there had been before it */
	uint8_t red[GUARD_RED];
};

/* The objects that are handed out, the oldest first; and how many there have been. Interrupts may
 * change them. */
extern struct list kmalloc_live;
extern uint32_t kmalloc_allocations;

/* From now on kmalloc and kfree check. After kmalloc_initialize, before the first kmalloc. */
void kmalloc_debug_enable(void);

/* Checks every object that is handed out or in quarantine; returns if all are whole. */
void kmalloc_debug_check(void);
