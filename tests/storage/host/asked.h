/*
 * A program of the host that asks. Each of its questions is a line on the standard output, from a
 * byte 1 on, and waits for a line on the standard input (labs/tools/grading/lab.py, converse). What
 * the program is to find out is not in its memory, and what it has asked is known outside.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Asks, and returns the line that answers; it is valid until the next question. */
char *ask(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with up to 65,000 bytes, in hexadecimal, after some words. More of them end the program
 * with status 3, and so does an answer that does not come. */
char *ask_with(const char *words, const void *bytes, size_t count);

/* Takes up to so many bytes from the hexadecimal digits of an answer; the others become 0. */
void take_hex(void *bytes, size_t count, const char *hex);
