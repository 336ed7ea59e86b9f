/* The keyboard: interrupts, scan codes, characters. */
#pragma once

/* Takes the keyboard's interrupts, IRQ 1. */
void keyboard_initialize(void);

/* The next character that was typed (ASCII; Enter is '\n'), or -1 when there is none. Does not
 * wait. */
int keyboard_get(void);
