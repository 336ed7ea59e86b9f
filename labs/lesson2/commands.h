/* The commands of lesson 2. */
#pragma once

/* Adds `crash`, and the commands of probes.c. */
void lesson2_commands_register(void);
