/*
 * Memory of any size for the kernel.
 *
 * kmalloc and kfree are called through pointers, which is as fast as any call. kmalloc_debug_enable
 * replaces them with functions that check; until then checking costs nothing. Any context; they
 * never sleep.
 */
#pragma once

#include <stdint.h>

/* In bytes: with what kmalloc_debug adds it is one block. */
#define KMALLOC_LARGEST ((4u << 20) - 64)

/* At least `size` bytes (0 to KMALLOC_LARGEST), aligned to 16, with undefined contents; NULL
 * without memory, and for more than 4 MiB. An object of size 0 is an object like any other. */
extern void *(*kmalloc)(uint32_t size);

/* Gives an object back; nothing for NULL. The caller must not pass an address that kmalloc did not
 * return, or an object that is free: with kmalloc_debug_enable that is a panic, which names the
 * functions. */
extern void (*kfree)(void *object);

/* How many bytes the object can hold: at least those that were asked for. */
extern uint32_t (*kmalloc_size)(const void *object);

/* An object of `size` bytes that begins with as much of the old one as fits; the old one is freed.
 * Returns NULL without memory, and then the old one stays as it was. For NULL it is kmalloc. */
void *krealloc(void *object, uint32_t size);

/* Once, after page_array_initialize. Panics without memory. */
void kmalloc_initialize(void);
