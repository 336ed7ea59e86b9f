/* The keyboard: scan codes of set 1, as the 8042 controller translates them (IBM PS/2 technical
 * reference). */
#include "drivers/console/keyboard.h"

#include <stdbool.h>

#include "drivers/clock/pic.h"
#include "drivers/console/serial.h"
#include "kernel/cpu/io.h"

#define DATA	    0x60
#define STATUS	    0x64
#define OUTPUT_FULL 0x01
#define LINE	    1
#define RELEASED    0x80 /* in a scan code: the key went up */
#define EXTENDED    0xe0 /* before the code of a key that the first keyboards had only once */
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
static bool shift, control, extended;

static void (*receive)(uint8_t byte);

/* What a terminal sends for keys from FIRST_SEQUENCE on, behind "\033[" (ECMA-48; VT220). */
#define FIRST_SEQUENCE 0x47
static const char sequences[][3] = { "H", "A", "5~", "",   "D",	 "",  "C",
				     "",  "F", "B",  "6~", "2~", "3~" };

static void add(char character)
{
	if (receive)
		receive(character);
	else if (character && written - taken < BUFFER)
		buffer[written++ % BUFFER] = character;
}

static void add_sequence(const char *end)
{
	if (!receive || !*end)
		return;
	receive('\033');
	receive('[');
	while (*end)
		receive(*end++);
}

static void press(uint8_t code)
{
	char character = code < sizeof(plain) - 1 ? (shift ? shifted : plain)[code] : '\0';

	if (code >= FIRST_SEQUENCE &&
	    code < FIRST_SEQUENCE + sizeof(sequences) / sizeof(*sequences))
		add_sequence(sequences[code - FIRST_SEQUENCE]);
	else if (character)
		add(control && character >= '@' ? character & 0x1f : character);
}

static void key(uint8_t code)
{
	bool down = !(code & RELEASED), was_extended = extended;

	extended = code == EXTENDED;
	if (extended)
		return;
	code &= ~RELEASED;
	if (code == CONTROL)
		control = down;
	else if (code == LEFT_SHIFT || code == RIGHT_SHIFT)
		shift = was_extended ? shift : down; /* an extended one is no key's */
	else if (down)
		press(code);
}

static void keyboard_interrupt(void)
{
	if (in8(STATUS) & OUTPUT_FULL)
		key(in8(DATA));
}

void keyboard_listen(void (*receive_byte)(uint8_t byte))
{
	receive = receive_byte;
}

void keyboard_initialize(void)
{
	irq_register(LINE, keyboard_interrupt);
	/* A byte that came before this would block the line: it rises with a new byte only. */
	for (unsigned i = 0; i < BUFFER && (in8(STATUS) & OUTPUT_FULL); i++)
		in8(DATA);
}

int keyboard_get(void)
{
	return taken == written ? -1 : (uint8_t)buffer[taken++ % BUFFER];
}

int keyboard_or_serial_get(void)
{
	int character = keyboard_get();

	return character >= 0 ? character : serial_get();
}
