/* The keyboard: interrupts, scan codes, characters. */
#pragma once

#include <stdint.h>

/* Takes the keyboard's interrupts, IRQ 1. */
void keyboard_initialize(void);

/* The next character that was typed (ASCII; Enter is '\n'), or -1 when there is none. Does not
 * wait. */
int keyboard_get(void);

/* The same of what was typed here or at the other end of the serial line. */
int keyboard_or_serial_get(void);

/* From now on gives what is typed to receive, from the interrupt handler, and keyboard_get finds
 * nothing any more. NULL: as before. */
void keyboard_listen(void (*receive)(uint8_t byte));

/* Shows the scan codes of keys that give no character to the function, with who listens: for what a
 * terminal sends instead. Only while somebody listens; at boot. */
void keyboard_on_other_key(void (*function)(uint8_t code, void (*receive)(uint8_t byte)));
