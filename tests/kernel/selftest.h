/* Tests that run inside the kernel and report in KTAP. */
#pragma once

/* Adds the command `selftest`. */
void selftest_commands_register(void);
