/* What the tests of the core's file layer share. */
#pragma once

#include "tests/host/fs/floors.h"

extern const struct unit_test root_tests[], tty_tests[];

/* The terminal: types a byte, asks whether another one fits, and what was shown last. */
#define SHIM_SCREEN 8192
extern void (*keyboard_listener)(uint8_t byte);
extern bool (*shim_has_room)(void);
extern char shim_screen[SHIM_SCREEN];
extern uint32_t shim_shown;
