/* The memory that boot/ sets up first, and that the kernel goes on using. */
#pragma once

#include <stdint.h>

/* The stack that kmain runs on, from its lowest byte; boot_stack_top is the byte after it. */
extern uint8_t boot_stack[], boot_stack_top[];

/* The kernel's page directory: all spaces have its upper part in common. */
extern uint32_t kernel_page_directory[1024];
