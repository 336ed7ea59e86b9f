/* Terminals in Linux's system calls for i386: commands of ioctl, and termios. The other commands
 * and settings are in kernel/abi/terminal_modes.h. */
#pragma once

#include <stdint.h>

#define TCGETS	  0x5401
#define TIOCSPGRP 0x5410
#define TCGETS2	  0x802c542a

#define ICRNL 0000400 /* of the input */

/* Output flags. */
#define OPOST 0000001
#define ONLCR 0000004

/* Local flags. */
#define ISIG   0000001
#define ICANON 0000002
#define ECHO   0000010

struct linux_termios {
	uint32_t input, output, control, local;
	uint8_t discipline;
	uint8_t characters[19];
};

/* What glibc 2.42 and later asks for: the speeds in bits a second, too. */
struct linux_termios2 {
	struct linux_termios settings;
	uint32_t input_speed, output_speed;
};
