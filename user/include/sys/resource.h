/* How nice a process is to others. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/resource.h"

/* value: -20 (gets the most) to 19. who: a process; 0 is the caller. Returns 0, or -1 and errno. */
int setpriority(int which, int who, int value);
