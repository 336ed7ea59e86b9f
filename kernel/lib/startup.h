/*
 * Start-up functions, which run once, when the rest of the kernel is ready. No code calls them by
 * name: a file that is linked starts by itself, and one that is left out is not missed. A kernel
 * without the breadth has none.
 *
 *	static void greet(void)
 *	{
 *		printk("hello\n");
 *	}
 *	STARTUP(greet)
 */
#pragma once

typedef void startup_function(void);

/* After a function: the linker puts the pointers to all of them together (boot/kernel.ld). */
#define STARTUP(function)                                                                          \
	static startup_function *const function##_startup                                          \
	    __attribute__((section(".startups"), used)) = function;

/* Calls all of them, in the order in which their files were linked, with interrupts enabled. They
 * must not depend on each other's order. Called once, by main.c, when all of the core is ready,
 * including the root directory, and before its files are unpacked. */
void startup_run_all(void);
