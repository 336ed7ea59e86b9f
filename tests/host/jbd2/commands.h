/* Commands for the journal of a real image, whose blocks are given. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Opens and recovers the journal, whose blocks are the first line of stdin, and obeys: begin N,
 * change BLOCK BYTE, escaped BLOCK BYTE, revoke BLOCK COUNT, end, commit, close. Without close it
 * is as if the power had failed. Prints a line for each. */
void work_on_image(const char *path, uint32_t block_size, bool wide, bool checksums);
