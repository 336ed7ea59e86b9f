/* More devices of memory. */
#pragma once

#include "mm/user_copy.h"

/* Fills the whole buffer with random bytes. Returns how many, or -EFAULT when not even the first
 * one could be written. */
int device_fill_random(struct buffer *to);
