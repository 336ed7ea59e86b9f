/* The commands that lesson 3 adds to the prompt. */
#pragma once

void lesson3_commands_register(void);
