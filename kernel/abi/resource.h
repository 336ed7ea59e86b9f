/* Linux's numbers for setpriority and getpriority (a process, a group or a user), and of
 * setrlimit's resources; those that the core limits are in fs/files.h and kernel/process/family.h.
 */
#pragma once

#define PRIO_PROCESS 0
#define PRIO_PGRP    1
#define PRIO_USER    2

#define LIMIT_CPU    0 /* seconds of processor time */
#define LIMIT_SIZE   1 /* of a file */
#define LIMIT_DATA   2 /* the heap and private memory */
#define LIMIT_STACK  3
#define LIMIT_CORE   4
#define LIMIT_SPACE  9	/* all memory */
#define LIMIT_QUEUED 11 /* pending signals, all that were sent; at most QUEUED_MAX */

#define QUEUED_MAX 1024u /* what the kernel has room for */
