/* Opening files. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/fcntl.h"
#include "kernel/abi/file.h"

/* With O_CREAT a mode follows. */
int open(const char *path, int flags, ...);

/* The argument, where the command has one, is an int. */
int fcntl(int descriptor, int command, ...);
