/* What the kernel tells a program at its start. */
#pragma once

#include "kernel/abi/auxv_library.h"

/* The value of a tag, or 0. */
unsigned long getauxval(unsigned long tag);
