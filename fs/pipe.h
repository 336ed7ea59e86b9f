/* Pipes: up to 64 KiB on their way from one program to another. */
#pragma once

#include <stdint.h>

#include "fs/file.h"

#define PIPE_CAPACITY 65536u

/* Makes a pipe without a name: a file to read from and one to write to, each with a reference.
 * flags: O_NONBLOCK or 0. -ENFILE without memory. */
int pipe_create(uint32_t flags, struct file **reader, struct file **writer);

/* Opening a pipe with a name: waits for the other end. */
extern const struct file_ops pipe_named_ops;

/* How many pipes there are, so that a leak shows. */
uint32_t pipe_count(void);
