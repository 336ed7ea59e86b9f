/* Waiting for children: the options that only waitid has. */
#pragma once

#include "kernel/abi/wait.h"

#define WEXITED 0x00000004
#define WNOWAIT 0x01000000 /* the news can be fetched again */
