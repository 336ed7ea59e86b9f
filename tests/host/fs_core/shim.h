/* What the tests of the core's file layer share. */
#pragma once

#include "tests/host/fs/floors.h"

#define SHIM_SAID 512

extern const struct unit_test root_tests[], tty_tests[];

/* What the kernel has printed last. */
extern char shim_said[SHIM_SAID];

/* The terminal: types a byte, asks whether another one fits, and what was shown last. */
#define SHIM_SCREEN 8192
extern void (*keyboard_listener)(uint8_t byte);
extern bool (*shim_has_room)(void);
extern char shim_screen[SHIM_SCREEN];
extern uint32_t shim_shown;

/* What the host gives; is moved along as it is read. */
extern const uint8_t *shim_archive;
extern uint32_t shim_archive_length;
