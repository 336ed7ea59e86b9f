/* A terminal's escape sequences on the text screen: those of ECMA-48 that an editor or a shell uses
 * to move the cursor, to erase, and to choose colours. Others are left out. */
#pragma once

/* From now on the screen understands them. */
void vga_escape_initialize(void);
