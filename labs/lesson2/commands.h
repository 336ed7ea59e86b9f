/* The commands of lesson 2. */
#pragma once

/* Adds `crash` and `exception`. */
void lesson2_commands_register(void);
