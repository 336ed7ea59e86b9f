/* Error numbers of Linux's system calls. */
#pragma once

#include "kernel/abi/errno.h"

/* Set when a call fails; there are no threads here. */
extern int errno;
