/*
 * The keyboard: from scan codes to characters.
 *
 * A key is a number, not a letter. The 8042 controller delivers one byte when a key goes down and
 * the same byte plus 0x80 when it comes up again (scan code set 1, IBM PS/2 technical reference):
 *
 *	Shift down, A down, A up, Shift up:	0x2a 0x1e 0x9e 0xaa	-> 'A'
 *	Up arrow down and up:			0xe0 0x48 0xe0 0xc8	-> no character
 *
 * The tables below are indexed by the code: 0x1e is the 31st character, 'a' or 'A'. Keys that came
 * with later keyboards have the prefix 0xe0, which looks like a key that comes up, so that old
 * software takes them for the key of the same code on the numeric keypad; so does this driver.
 *
 * The handler of IRQ 1 is the only writer, with interrupts disabled. What it decodes goes to
 * `keyboard_listener`, or into a ring:
 *
 *	written 7, taken 5: two characters wait, at buffer[5] and buffer[6]
 *
 * Each side moves its own counter only, and moves it last, so no lock is needed. Reading does not
 * need interrupts disabled.
 */
#include "drivers/console/keyboard.h"

#include "drivers/clock/pic.h"
#include "drivers/console/serial.h"
#include "kernel/cpu/io.h"

#define DATA	    0x60
#define STATUS	    0x64
#define OUTPUT_FULL 0x01
#define LINE	    1
#define RELEASED    0x80 /* in a scan code: the key went up */
#define CONTROL	    0x1d
#define LEFT_SHIFT  0x2a
#define RIGHT_SHIFT 0x36
#define BUFFER	    64u /* a power of two */

/* A US keyboard; 0 where a key gives no character. */
static const char plain[] =
    "\0\0331234567890-=\b\tqwertyuiop[]\n\0asdfghjkl;'`\0\\zxcvbnm,./\0*\0 ";
static const char shifted[] =
    "\0\033!@#$%^&*()_+\b\tQWERTYUIOP{}\n\0ASDFGHJKL:\"~\0|ZXCVBNM<>?\0*\0 ";

/* Written by the interrupt, read by keyboard_get: each side moves its own counter only. */
static char buffer[BUFFER];
static volatile uint32_t written, taken;
static bool shift, control;

void (*keyboard_listener)(uint8_t byte);

/* If the ring is full the character is dropped, as a PC does when it beeps. */
static void buffer_character(char character)
{
	if (keyboard_listener)
		keyboard_listener(character);
	else if (written - taken < BUFFER)
		buffer[written++ % BUFFER] = character;
}

/* Control clears the upper bits of a letter: 'c' is 0x63, and Control-C is 0x03. */
static void press(uint8_t code)
{
	char character = code < sizeof(plain) - 1 ? (shift ? shifted : plain)[code] : '\0';

	if (character)
		buffer_character(control && character >= '@' ? character & 0x1f : character);
	else if (keyboard_other_key && keyboard_listener)
		keyboard_other_key(code, keyboard_listener);
}

/* The shift keys and Control change the state, all others are events. */
static void key(uint8_t code)
{
	bool down = !(code & RELEASED);

	code &= ~RELEASED;
	if (code == CONTROL)
		control = down;
	else if (code == LEFT_SHIFT || code == RIGHT_SHIFT)
		shift = down;
	else if (down)
		press(code);
}

/* The byte must be read in any case: the controller sends no other byte before that. */
static void keyboard_interrupt(void)
{
	if (in8(STATUS) & OUTPUT_FULL)
		key(in8(DATA));
}

void keyboard_initialize(void)
{
	irq_register(LINE, keyboard_interrupt);
	/* A byte that is already there would block the IRQ: only a new byte raises it. */
	for (unsigned i = 0; i < BUFFER && (in8(STATUS) & OUTPUT_FULL); i++)
		in8(DATA);
}

/* For one reader. The cast keeps a character above 127 from being taken for -1. */
int keyboard_get(void)
{
	return taken == written ? -1 : (uint8_t)buffer[taken++ % BUFFER];
}

int keyboard_or_serial_get(void)
{
	int character = keyboard_get();

	return character >= 0 ? character : serial_get();
}
