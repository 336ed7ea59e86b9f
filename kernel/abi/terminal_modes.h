/* Terminals: what only raw mode and job control need. */
#pragma once

#include "kernel/abi/terminal.h"

/* Commands of ioctl. */
#define TCSETS	   0x5402
#define TCSETSW	   0x5403
#define TCSETSF	   0x5404
#define TCSBRK	   0x5409
#define TCXONC	   0x540a
#define TCFLSH	   0x540b
#define TCOFLUSH   1 /* its arguments; 0: input */
#define TCIOFLUSH  2
#define TCION	   3 /* the last one of TCXONC */
#define TIOCEXCL   0x540c
#define TIOCNXCL   0x540d
#define TIOCSCTTY  0x540e
#define TIOCGPGRP  0x540f
#define TIOCOUTQ   0x5411
#define TIOCSTI	   0x5412
#define TIOCGWINSZ 0x5413
#define TIOCSWINSZ 0x5414
#define TIOCNOTTY  0x5422
#define TIOCGETD   0x5424
#define TCSBRKP	   0x5425
#define TIOCGSID   0x5429
#define TCSETS2	   0x402c542b /* and TCSETSW2, TCSETSF2 */
#define TCSETSW2   0x402c542c
#define TCSETSF2   0x402c542d
#define TIOCGPTN   0x80045430 /* of a pseudo-terminal: its number, */
#define TIOCSPTLCK 0x40045431 /* and whether its slave cannot be opened */

/* Input flags. */
#define INLCR 0000100
#define IGNCR 0000200
#define IXON  0002000
#define IUTF8 0040000

/* Control flags: speeds, eight bits, receiver on. A speed is one of 31, or BOTHER: that of
 * linux_termios2. That of the input is 16 bits higher; 0 there: the same as that of the output. */
#define B38400	    0000017
#define B115200	    0010002
#define BOTHER	    0010000
#define CBAUD	    0010017
#define INPUT_SPEED 16
#define CS8	    0000060
#define CREAD	    0000200

/* Local flags. */
#define ECHOE	0000020
#define ECHOK	0000040
#define ECHONL	0000100
#define NOFLSH	0000200
#define TOSTOP	0000400
#define ECHOCTL 0001000
#define ECHOKE	0004000
#define IEXTEN	0100000

/* Indices of control characters. */
#define VINTR	 0
#define VQUIT	 1
#define VERASE	 2
#define VKILL	 3
#define VEOF	 4
#define VTIME	 5
#define VMIN	 6
#define VSUSP	 10
#define VEOL	 11
#define VREPRINT 12
#define VWERASE	 14
#define VLNEXT	 15
#define VEOL2	 16

struct linux_window_size {
	uint16_t rows, columns, width, height;
};
