/*
 * Arrows and the keys around them: each becomes the escape sequence that a terminal sends.
 *
 *	Up arrow		scan code 0x48		ESC [ A
 *	Page Up			scan code 0x49		ESC [ 5 ~
 *
 * The keyboard's interrupt handler passes these keys on, because they are not characters. Its
 * listener gets the bytes one after the other.
 */
#include "drivers/console/keyboard.h"

/* What follows "ESC [" for the keys from FIRST on (ECMA-48; VT220): Home, Up, Page Up, -, Left, 5,
 * Right, +, End, Down, Page Down, Insert, Delete. */
#define FIRST 0x47
static const char sequences[][3] = { "H", "A", "5~", "",   "D",	 "",  "C",
				     "",  "F", "B",  "6~", "2~", "3~" };

void keyboard_other_key(uint8_t code, void (*receive)(uint8_t byte))
{
	if (code < FIRST || code >= FIRST + sizeof(sequences) / sizeof(*sequences) ||
	    !*sequences[code - FIRST])
		return;
	receive('\033');
	receive('[');
	for (const char *at = sequences[code - FIRST]; *at; at++)
		receive(*at);
}
