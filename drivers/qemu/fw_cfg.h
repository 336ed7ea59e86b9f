/* QEMU's firmware configuration device: named files from the host. */
#pragma once

#include <stdint.h>

/* Opens the file of this name ("opt/org.apprentice/seed"), to be read from its beginning with
 * fw_cfg_next, until another one is opened. Returns its length, or -ENOENT.
 */
int fw_cfg_open(const char *name);

/* The next bytes of the open file; zeros after its end. */
void fw_cfg_next(void *buffer, uint32_t length);
