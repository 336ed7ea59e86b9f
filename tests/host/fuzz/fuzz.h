/* What libFuzzer calls, and random.c where there is no libFuzzer. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One input: see fuzz.c. Ends the program when anything is wrong. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Once, before the first input. */
int LLVMFuzzerInitialize(int *count, char ***arguments);
