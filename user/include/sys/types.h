/* The types of the system calls' arguments. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef __PTRDIFF_TYPE__ ssize_t;
typedef long long off_t;
typedef int pid_t;
typedef unsigned uid_t;
typedef unsigned gid_t;
typedef unsigned mode_t;
typedef uint64_t dev_t;
typedef uint64_t ino_t;
typedef long time_t;
typedef int clockid_t;
