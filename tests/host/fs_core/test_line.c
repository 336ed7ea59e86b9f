/* The same tests of the core's own line. */
#include "tests/host/fs/test_line.c"
