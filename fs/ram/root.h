/* The files that programs find when they begin. */
#pragma once

/* Makes the root in memory, unpacks what the host gives into it (the setting "initramfs"), and
 * makes /dev, /proc and /tmp. What is wrong with the archive is said, and the kernel goes on with
 * what it has. Panics without memory. */
void root_initialize(void);
