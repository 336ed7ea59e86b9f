/* What stands in a blank of a program's handout: says which exercise is not written yet, and ends
 * the program. */
#pragma once

/* In user/libc/missing.asm. */
void exercise_missing(const char *number) __attribute__((noreturn));
