/*
 * Functions that only some kernels have. Where no file that is linked defines one, its name is
 * NULL, and its caller does without:
 *
 *	int fcntl_more(struct file *file, const struct trap_frame *frame) OPTIONAL;
 *	return fcntl_more ? fcntl_more(file, frame) : -EINVAL;
 *
 * So the core calls what the breadth adds. There is one definition, or none: nothing is replaced,
 * and nothing is set while the kernel runs (tests/tree/test_breadth.py).
 */
#pragma once

#define OPTIONAL __attribute__((weak))
