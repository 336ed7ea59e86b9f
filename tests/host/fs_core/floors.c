/* The same floors under the core's own files. */
#include "tests/host/fs/floors.c"
