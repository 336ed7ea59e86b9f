/* The settings of a terminal, as programs read and write them. */
#pragma once

#include <stdint.h>

#include "kernel/abi/terminal_modes.h"

/* Bits a second, if BOTHER is set in the control flags. */
struct terminal_speeds {
	uint32_t input, output;
};

/* Writes settings and speeds to a user address: struct termios2. Returns 0 or -EFAULT. */
int terminal_settings_give(const struct linux_termios *settings,
			   const struct terminal_speeds *speeds, uint32_t address);

/* Reads settings from a user address, as one of TCSETS to TCSETSF2 has them. Those without speeds
 * leave the speeds as they are. Returns 0 or -EFAULT. */
int terminal_settings_take(struct linux_termios *settings, struct terminal_speeds *speeds,
			   uint32_t command, uint32_t address);
