/* Commands to devices. */
#pragma once

#include "kernel/abi/terminal_modes.h"

struct winsize {
	unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};

int ioctl(int descriptor, unsigned long command, ...);
