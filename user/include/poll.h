/* Waiting for several files. */
#pragma once

#include "kernel/abi/poll.h"

struct pollfd {
	int fd;
	short events, revents;
};

/* timeout in milliseconds; negative: for ever. */
int poll(struct pollfd *files, unsigned long count, int timeout);
