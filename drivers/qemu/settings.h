/* Settings that the host gives for a run: in QEMU's configuration device, or on the kernel's
 * command line. */
#pragma once

#include <stdint.h>

/*
 * Copies the setting ("seed", "script"), NUL-terminated. Looks for opt/org.apprentice/NAME first,
 * then for NAME=value on the command line. Returns its length (which is at least size when it was
 * cut), or -ENOENT.
 */
int setting_read(const char *name, char *buffer, uint32_t size);

/* The setting as a decimal number, or otherwise when it is absent or no number (which is said). */
uint64_t setting_number(const char *name, uint64_t otherwise);
