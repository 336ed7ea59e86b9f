/* Checksums of journals, and of file systems with metadata_csum. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Continues a CRC-32C (Castagnoli): begin with ~0u; the result is not inverted. */
uint32_t crc32c(uint32_t crc, const void *data, size_t length);

/* Continues a CRC-32 of IEEE 802.3, bits not reversed: begin with ~0u; the result is not inverted.
 * Slow; only journals of version 1 of checksums need it. */
uint32_t crc32_big_endian(uint32_t crc, const void *data, size_t length);
