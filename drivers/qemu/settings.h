/* Settings that the host gives for a run, in QEMU's configuration device. */
#pragma once

#include <stdint.h>

/*
 * Copies the setting ("seed", "script"), which is the file opt/org.apprentice/NAME, and closes it
 * with a NUL; what does not fit is cut. Returns its length (which is at least size when it was
 * cut), or -ENOENT.
 */
int setting_read(const char *name, char *buffer, uint32_t size);

/* The setting as a decimal number; `otherwise` if it is absent, or not a number, which is reported.
 */
uint64_t setting_number(const char *name, uint64_t otherwise);
