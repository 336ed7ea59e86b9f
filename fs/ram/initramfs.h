/* The files that the root begins with. */
#pragma once

/* Makes the files of the host's archive (fs/cpio.h) in the root. Directories that are missing on
 * the way are made (mode 0755). */
void initramfs_unpack(void);
