/* Limits of a program's memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/optional.h"

/* Would the program's memory, or its data, be larger than its limit, or in more areas, with this
 * many bytes more of an area with these flags? `instead` of so many that are there (MAP_FIXED). */
bool is_too_much(uint32_t more, uint32_t flags, uint32_t start, uint32_t instead) OPTIONAL;

/* Would there be too much data, if the areas in the range became writable? */
bool would_be_too_much_data(uint32_t start, uint32_t end) OPTIONAL;
