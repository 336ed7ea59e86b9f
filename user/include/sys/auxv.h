/* The auxiliary vector, which the kernel passes to a new program. */
#pragma once

#include "kernel/abi/auxv_library.h"

/* The value of a tag, or 0. */
unsigned long getauxval(unsigned long tag);
