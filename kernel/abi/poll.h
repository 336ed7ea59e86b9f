/* Waiting for several files: Linux's numbers and structures. */
#pragma once

#include <stdint.h>

#define POLLIN	   0x001
#define POLLPRI	   0x002
#define POLLOUT	   0x004
#define POLLERR	   0x008
#define POLLHUP	   0x010
#define POLLNVAL   0x020
#define POLLRDNORM 0x040
#define POLLWRNORM 0x100
#define POLLRDHUP  0x2000

struct linux_poll {
	int32_t descriptor;
	int16_t events;
	int16_t ready;
};
