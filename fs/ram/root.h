/* The files that programs find when they begin. */
#pragma once

/* Makes the root in memory, with /dev and /tmp. Panics without memory. */
void root_initialize(void);

/* Unpacks what the host gives into it (the setting "initramfs"). What is wrong with the archive is
 * said, and the kernel goes on with what it has. */
void root_unpack(void);
