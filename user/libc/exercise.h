/* The content of a blank in a program as handed out: says which exercise is not written yet, and
 * ends the program. */
#pragma once

/* In user/libc/missing.asm. */
void exercise_missing(const char *number) __attribute__((noreturn));
