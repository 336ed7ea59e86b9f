/* The commands that lesson 4 adds to the prompt. */
#pragma once

void lesson4_commands_register(void);
