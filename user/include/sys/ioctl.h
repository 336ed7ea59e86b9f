/* Commands to devices. */
#pragma once

#define TCGETS	   0x5401
#define TIOCSCTTY  0x540e
#define TIOCGPGRP  0x540f
#define TIOCSPGRP  0x5410
#define TIOCGWINSZ 0x5413
#define TIOCSWINSZ 0x5414
#define TIOCNOTTY  0x5422

struct winsize {
	unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};

int ioctl(int descriptor, unsigned long command, ...);
