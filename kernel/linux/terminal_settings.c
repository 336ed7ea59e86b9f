/* Settings of terminals, with and without speeds: struct termios2 and struct termios. */
#include "kernel/linux/terminal.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/signal.h"
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

int terminal_get_settings(const struct terminal *terminal, uint32_t argument)
{
	struct linux_termios2 wide = { terminal->line.settings, 0, 0 };
	uint32_t code = wide.settings.control, input = code >> INPUT_SPEED;

	wide.output_speed = speed_of(code, terminal->output_speed);
	wide.input_speed =
	    input & CBAUD ? speed_of(input, terminal->input_speed) : wide.output_speed;
	return give(argument, &wide, sizeof(wide));
}

/* The commands without speeds leave those. */
int terminal_set_settings(struct terminal *terminal, uint32_t command, uint32_t argument)
{
	bool has_speeds = command >= TCSETS2;
	struct linux_termios2 wide = { .input_speed = terminal->input_speed,
				       .output_speed = terminal->output_speed };
	int error = terminal_check_background(terminal, SIGTTOU);

	if (error)
		return error;
	if (copy_from_user(&wide, argument, has_speeds ? sizeof(wide) : sizeof(wide.settings)))
		return -EFAULT;
	terminal->input_speed = wide.input_speed;
	terminal->output_speed = wide.output_speed;
	line_set(&terminal->line, &wide.settings, command == TCSETSF || command == TCSETSF2);
	terminal->hardware->resume(terminal);
	return 0;
}
