/* Waiting for children: options of Linux's wait4. */
#pragma once

#define WNOHANG	   0x00000001
#define WUNTRACED  0x00000002
#define WCONTINUED 0x00000008
