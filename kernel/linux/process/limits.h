/* A limit of setrlimit that has a most: of signals that are pending. */
#pragma once

#define LIMIT_QUEUED 11 /* pending signals, all that were sent; at most QUEUED_MAX */
#define QUEUED_MAX   1024u
