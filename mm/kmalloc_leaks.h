/* The report of leaks: who asked for what is not freed. */
#pragma once

#include <stdint.h>

/* Prints a line for each function that has asked for objects since there had been `since`
 * allocations, and for which they are not freed yet: how many, and their bytes. Returns how many
 * objects these are. While kmalloc_debug.h is on: else there are none. */
uint32_t kmalloc_leaks(uint32_t since);
