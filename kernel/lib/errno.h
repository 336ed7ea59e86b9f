/* Error numbers. Functions that can fail return one of them negated. */
#pragma once

#include "kernel/abi/errno.h"

/* A sleep that a signal ended: kernel/process/signal_deliver.c turns it into EINTR, or calls again.
 * Ring 3 never sees it. */
#define ERESTART 512

/* The same, but after a handler it is always EINTR: for calls that sleep for a time, or for a
 * signal.
 */
#define ERESTART_SLEEP 514

/* The name of a (positive) error number, such as "EIO"; "unknown error" for others. */
const char *errno_name(int error);
