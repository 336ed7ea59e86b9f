/* A terminal's escape sequences on the text screen: those of ECMA-48 that an editor or a shell uses
 * to move the cursor, to erase, and to choose colours. Others are ignored. */
#pragma once

/* From now on the screen interprets them. */
void vga_escape_initialize(void);
