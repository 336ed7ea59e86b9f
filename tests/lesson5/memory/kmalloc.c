/* kmalloc, for the visible tests. */
#include "tests/lesson5/memory/kmalloc.h"
