/* Ending the machine. */
#pragma once

#include "kernel/abi/reboot.h"

/* Does not return when it succeeds. */
int reboot(int command);
