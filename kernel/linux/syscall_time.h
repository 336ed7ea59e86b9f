/* Shared by the system calls about time and those about tasks. */
#pragma once

#include <stdint.h>

#include "kernel/abi/clocks.h"

/* What getrusage and wait4 tell of ticks in user mode and in the kernel. */
struct linux_usage usage_of_ticks(uint32_t user, uint32_t system);
