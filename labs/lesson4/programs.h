/* Programs that the kernel starts itself: the first one, and those of its own commands. */
#pragma once

#include <stdint.h>

/* Makes the current thread of the kernel ready to go on as the program words[0] with these
 * arguments, by program_enter(current->frame): as the leader of a session of its own, with the
 * terminal as its descriptors 0, 1 and 2. Returns 0 or a negated errno. */
int program_become(int count, char *const words[]);

/* Starts the program as a child of the current thread, and waits for its end, and for that of all
 * other children that end meanwhile. Returns its wait status; -EAGAIN when there are too many
 * tasks. A program that cannot be loaded is reported, and ends as in a shell. */
int program_run(int count, char *const words[]);
