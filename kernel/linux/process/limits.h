/* Limits of setrlimit that have a most: of tasks, and of signals that are pending. */
#pragma once

#include "kernel/task/task.h"

#define LIMIT_TASKS  6	/* tasks of the one user; at most TASK_LIMIT */
#define LIMIT_QUEUED 11 /* pending signals, all that were sent; at most QUEUED_MAX */
#define QUEUED_MAX   1024u
