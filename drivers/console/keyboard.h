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

/* Gets what is typed, from the interrupt handler, and keyboard_get finds nothing. NULL: nobody
 * listens. */
extern void (*keyboard_listener)(uint8_t byte);

/* Called with the scan codes of keys that give no character, and with who listens, for what a
 * terminal sends instead; only while somebody listens. NULL: nobody is. Set at boot. */
extern void (*keyboard_on_other_key)(uint8_t code, void (*receive)(uint8_t byte));
