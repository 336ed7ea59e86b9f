/* The keyboard: interrupts, scan codes, characters. */
#pragma once

#include <stdint.h>

#include "kernel/lib/optional.h"

/* Takes the keyboard's interrupts, IRQ 1. */
void keyboard_initialize(void);

/* The next character that was typed (ASCII; Enter is '\n'), or -1 when there is none. Does not
 * wait. */
int keyboard_get(void);

/* The same for characters typed here or at the other end of the serial line. */
int keyboard_or_serial_get(void);

/* If it is not NULL, the interrupt handler passes what is typed to this function, and keyboard_get
 * finds nothing. */
extern void (*keyboard_listener)(uint8_t byte);

/* Called, while there is a listener, with the scan code of a key that gives no character, and with
 * the listener, which gets what a terminal sends instead. */
void keyboard_other_key(uint8_t code, void (*receive)(uint8_t byte)) OPTIONAL;
