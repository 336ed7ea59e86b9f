/* QEMU's firmware configuration device: named files from the host. */
#pragma once

#include <stdint.h>

/*
 * Reads the file of this name ("opt/org.apprentice/seed") into buffer, at most size - 1 bytes, and
 * closes it with a NUL. Returns the file's length, -ENODEV outside QEMU, or -ENOENT.
 */
int fw_cfg_read(const char *name, char *buffer, uint32_t size);
