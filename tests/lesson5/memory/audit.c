/* Broken allocators, for the visible tests. */
#include "tests/lesson5/memory/audit.h"
