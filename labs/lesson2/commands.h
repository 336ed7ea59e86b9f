/* The commands of lesson 2. */
#pragma once

/* Adds `crash` and `exception`, and those of the function below. */
void lesson2_commands_register(void);
