/* A machine's memory in the address space of a test, where the kernel has it: at 3 GiB. */
#pragma once

#include "kernel/report/boot_info.h"
#include "tests/host/unit.h"

#define MACHINE_KERNEL_END 0xc0181234u

extern const struct unit_test page_array_tests[], buddy_tests[], slab_tests[], kmalloc_tests[];

/* Memory with these ranges, full of junk, and a page array. `megabytes` is how much is there. Once
 * in a process. */
void machine_start(uint32_t megabytes, const struct boot_memory_range *ranges, uint32_t count);

/* The same with the ranges of a PC. */
void machine_start_pc(uint32_t megabytes);

/* Calls memory_audit, and fails the test if it finds anything; interrupts must be on. */
void machine_audit(void);
