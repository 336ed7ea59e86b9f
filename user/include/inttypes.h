/* Integer types, and the letters that print them on a 32-bit machine. */
#pragma once

#include <stdint.h>

#define PRId64 "lld"
#define PRIu64 "llu"
#define PRIx64 "llx"
