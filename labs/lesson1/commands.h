/* The commands of lesson 1. */
#pragma once

/* Adds `memory` and `panic`. */
void lesson1_commands_register(void);
