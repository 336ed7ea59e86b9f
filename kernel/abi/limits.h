/* How long paths are, and what a pipe takes whole: Linux's limits. */
#pragma once

#define PATH_MAX 4096 /* bytes, with the NUL */
#define NAME_MAX 255  /* bytes, without it */
#define PIPE_BUF 4096 /* a write to a pipe up to this size is not torn apart */
