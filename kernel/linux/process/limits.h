/* RLIMIT_SIGPENDING, which cannot be raised beyond what the kernel has room for. */
#pragma once

#define LIMIT_QUEUED 11 /* pending signals, all that were sent; at most QUEUED_MAX */
#define QUEUED_MAX   1024u
