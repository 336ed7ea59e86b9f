/* Waiting for children: the options of Linux's wait4, and the kinds of news about a child. */
#pragma once

#define WNOHANG	   0x00000001
#define WUNTRACED  0x00000002
#define WCONTINUED 0x00000008

/* What has happened to a child, as siginfo says it. */
#define CLD_EXITED    1
#define CLD_KILLED    2
#define CLD_STOPPED   5
#define CLD_CONTINUED 6
