/* QEMU's firmware configuration device: named files from the host. */
#pragma once

#include <stdint.h>

/*
 * Reads the file of this name ("opt/org.apprentice/seed") into buffer, at most size - 1 bytes, and
 * closes it with a NUL. Returns the file's length, -ENODEV outside QEMU, or -ENOENT.
 */
int fw_cfg_read(const char *name, char *buffer, uint32_t size);

/* Opens the file of this name, to be read from its beginning with fw_cfg_next, until another one is
 * opened or read. Returns its length, or as fw_cfg_read. */
int fw_cfg_open(const char *name);

/* The next bytes of the open file; zeros after its end. */
void fw_cfg_next(void *buffer, uint32_t length);
