/* Linux's limits: the length of paths, and the size of an atomic write to a pipe. */
#pragma once

#define PATH_MAX 4096 /* bytes, with the NUL */
#define NAME_MAX 255  /* bytes, without it */
#define PIPE_BUF 4096 /* a write of up to this size to a pipe is atomic */
