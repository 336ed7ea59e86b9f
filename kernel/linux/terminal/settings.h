/* The settings of a terminal, as programs read and write them. */
#pragma once

#include <stdint.h>

#include "kernel/abi/terminal_modes.h"

/* Writes settings to a user address, as struct termios2, with the speeds in bits a second: those
 * that the control flags name, or (BOTHER) those that are in them. Returns 0 or -EFAULT. */
int terminal_settings_give(struct linux_termios2 settings, uint32_t address);
