/* Waiting for children. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/waitid.h"

#define WEXITSTATUS(status) ((status) >> 8 & 0xff)
#define WTERMSIG(status)    ((status) & 0x7f)
#define WSTOPSIG(status)    WEXITSTATUS(status)
#define WIFEXITED(status)   (WTERMSIG(status) == 0)
#define WIFSTOPPED(status)  (((status) & 0xff) == 0x7f)
#define WIFSIGNALED(status) (!WIFEXITED(status) && !WIFSTOPPED(status))

pid_t wait(int *status);
pid_t waitpid(pid_t pid, int *status, int options);
