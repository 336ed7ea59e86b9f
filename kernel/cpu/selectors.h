/* Selectors: where a descriptor is in the kernel's table, and with which privilege it is used. */
#pragma once

#define KERNEL_CODE	  0x08
#define KERNEL_DATA	  0x10
#define USER_CODE	  0x1b /* the last two bits are the privilege level: 3 */
#define USER_DATA	  0x23
#define KERNEL_TASK	  0x28
#define DOUBLE_FAULT_TASK 0x30
#define THREAD_LOCAL	  0x3b /* the first of user mode's own segments: of the task that runs */
