/* Numbers of Linux's system calls for the i386: SYS_read and so on. */
#pragma once

#include "kernel/abi/numbers.h"
#include "kernel/abi/signal_return.h"
