/* What code shares that a test puts into a stopped kernel, to call its functions one by one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ANSWERS 64

extern uint32_t answers[ANSWERS]; /* for the test */
extern uint32_t answer_count;

/* Adds an answer; what does not fit is left out. With interrupts disabled. */
void answer(uint32_t word);
