/*
 * Settings of terminals with their speeds, struct termios2: glibc 2.42 and later asks for those. A
 * speed is one of 31 codes in the control flags, or BOTHER and a number beside them; 0 for the
 * input means that it is as fast as the output. No speed changes anything here.
 */
#include "kernel/linux/terminal/settings.h"

#include <stdbool.h>

#include "kernel/abi/errno.h"
#include "mm/user_copy.h"

/* Bits a second of a code in the control flags; `other` is what BOTHER stands for. */
static uint32_t speed_of(uint32_t code, uint32_t other)
{
	static const uint32_t speeds[] = {
		0,	 50,	  75,	   110,	    134,     150,     200,     300,
		600,	 1200,	  1800,	   2400,    4800,    9600,    19200,   38400,
		57600,	 115200,  230400,  460800,  500000,  576000,  921600,  1000000,
		1152000, 1500000, 2000000, 2500000, 3000000, 3500000, 4000000,
	};

	code &= CBAUD;
	return code == BOTHER ? other : speeds[code < BOTHER ? code : code - BOTHER + B38400];
}

int terminal_settings_give(struct linux_termios2 settings, uint32_t address)
{
	uint32_t code = settings.settings.control, input = code >> INPUT_SPEED;

	settings.output_speed = speed_of(code, settings.output_speed);
	settings.input_speed =
	    input & CBAUD ? speed_of(input, settings.input_speed) : settings.output_speed;
	return give(address, &settings, sizeof(settings));
}
