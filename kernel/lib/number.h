/* Numbers that people type. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Reads the whole text as a number below 2^64, decimal or, after 0x, hexadecimal. Returns false for
 * any other text. */
bool number_parse(const char *text, uint64_t *value);
