/* epoll and eventfd: Linux's numbers and structures for i386. */
#pragma once

#include <stdint.h>

#define EPOLL_CTL_ADD 1u
#define EPOLL_CTL_DEL 2u
#define EPOLL_CTL_MOD 3u

/* Modes, in one word with poll's events. */
#define EPOLLEXCLUSIVE 0x10000000u
#define EPOLLWAKEUP    0x20000000u
#define EPOLLONESHOT   0x40000000u
#define EPOLLET	       0x80000000u

struct linux_epoll_event {
	uint32_t events;
	uint32_t data[2]; /* the program's own */
};

#define EFD_SEMAPHORE 1u
