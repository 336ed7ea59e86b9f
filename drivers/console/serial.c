/*
 * The first serial port, polled: a PC16550D or its ancestors (National Semiconductor data sheet,
 * table II).
 *
 * Eight registers. While bit 7 of the line control register is set, the first two are the divisor
 * of the baud clock. 115200 / divisor is the rate, so 1 is the fastest: a byte takes ten bits, 87
 * microseconds.
 *
 * Writing is always polled: panic must work with interrupts disabled, and in the middle of
 * anything. Reading is polled until serial_listen is called (drivers/console/serial_input.c).
 *
 * A port that is not there reads as all ones: it seems ready for every character, and a line status
 * with every kind of error at once means that there is no port. Any context after
 * serial_initialize.
 */
#include "drivers/console/serial.h"

#include "kernel/cpu/io.h"
#include "kernel/cpu/pc.h"
#include "kernel/report/printk.h"

#define PORT	       SERIAL_PORT
#define DATA	       (PORT + 0) /* or the divisor's low half, when DIVISOR_ACCESS is set */
#define INTERRUPTS     (PORT + 1) /* or its high half */
#define FIFO	       (PORT + 2)
#define LINE_CONTROL   (PORT + 3)
#define MODEM_CONTROL  (PORT + 4)
#define LINE_STATUS    (PORT + 5)
#define DIVISOR_ACCESS 0x80
#define EIGHT_BITS     0x03 /* no parity, one stop bit */
#define READY	       0x03
#define INTERRUPT_LINE 0x08 /* in the modem control: the PC's own gate for the IRQ */
#define RECEIVED       0x01
#define NOBODY	       0xff /* the line status where there is no port */
#define CAN_SEND       SERIAL_CAN_SEND
#define SEND_TRIES     100000 /* a character takes 87 us; a port that needs longer is broken */

/* EXERCISE 1.3 (formatted printing, part 2): one byte to the serial port. labs/lesson1/README.md
   explains I/O ports and the UART.
   put_raw: sends the byte as it is, as soon as the line status says CAN_SEND. When it has read the
   line status SEND_TRIES times, it gives up on the byte.
   put: the same for text: a terminal needs one carriage return before each newline.
   Pitfalls: a port that is broken, or not there, must not stop the kernel. A byte that is
   written too early replaces the one before. */
/* SOLUTION 1.3 { */
static void put_raw(char character)
{
	for (unsigned tries = 0; tries < SEND_TRIES; tries++) {
		if (in8(LINE_STATUS) & CAN_SEND) {
			out8(DATA, character);
			return;
		}
	}
}

static void put(char character)
{
	if (character == '\n')
		put_raw('\r');
	put_raw(character);
}
/* } SOLUTION 1.3 */

/* Interrupts of the port are off while its divisor is set. The FIFO of 16 bytes is emptied and
 * enabled: with it no byte of a burst is lost for 1.4 ms. */
void serial_initialize(void)
{
	static struct console console = { .put = put, .put_unchanged = put_raw };

	out8(INTERRUPTS, 0);
	out8(LINE_CONTROL, DIVISOR_ACCESS);
	out8(DATA, 1); /* 115200 baud */
	out8(INTERRUPTS, 0);
	out8(LINE_CONTROL, EIGHT_BITS);
	out8(FIFO, 0x07); /* on, and empty */
	out8(MODEM_CONTROL, READY);
	console_register(&console);
}

/* From one context at a time: another reader could take the byte between the two accesses. */
int serial_get(void)
{
	uint8_t status = in8(LINE_STATUS);

	return status != NOBODY && (status & RECEIVED) ? in8(DATA) : -1;
}

/* A PC routes the port's request through a gate, output 2 of the modem control: both must be open.
 */
void serial_interrupts(bool wanted)
{
	out8(MODEM_CONTROL, wanted ? READY | INTERRUPT_LINE : READY);
	out8(INTERRUPTS, wanted ? RECEIVED : 0);
}
