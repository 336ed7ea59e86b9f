/* Error numbers. Functions that can fail return one of them negated. */
#pragma once

#include <stdbool.h>

#include "kernel/abi/errno.h"

/* A sleep that a signal ended: kernel/process/signal_deliver.c turns it into EINTR, or calls again.
 * A program never sees it. */
#define ERESTART 512

/* The same, but after a handler it is always EINTR: for calls that sleep until a time, or until a
 * signal.
 */
#define ERESTART_SLEEP 514

/* Is the result of a call an error? An address, say, may look negative too. */
static inline bool is_error(int result)
{
	return result < 0 && result >= -ERROR_LAST;
}

/* The name of a (positive) error number, such as "EIO"; "unknown error" for others. */
const char *errno_name(int error);
