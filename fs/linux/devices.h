/* More devices of memory. */
#pragma once

#include "mm/user_copy.h"

/* The next 64 random bits; they follow from the setting `seed`. */
uint64_t device_random(void);

/* Fills the whole buffer with random bytes. Returns how many, or -EFAULT when not even the first
 * one could be written. */
int device_fill_random(struct buffer *to);
