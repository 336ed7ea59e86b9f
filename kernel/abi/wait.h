/* Waiting for children: options of Linux's wait4 and waitid. */
#pragma once

#define WNOHANG	   0x00000001
#define WUNTRACED  0x00000002
#define WEXITED	   0x00000004 /* waitid's own */
#define WCONTINUED 0x00000008
#define WNOWAIT	   0x01000000 /* waitid's own: the news stays news */
