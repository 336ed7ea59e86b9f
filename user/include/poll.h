/* Waiting for several files. */
#pragma once

#define POLLIN	1
#define POLLOUT 4
#define POLLERR 8
#define POLLHUP 16

struct pollfd {
	int fd;
	short events, revents;
};

/* timeout in milliseconds; negative: for ever. */
int poll(struct pollfd *files, unsigned long count, int timeout);
