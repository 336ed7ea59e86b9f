/* Checksums of journals, and of file systems with metadata_csum. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Continues a CRC-32C (Castagnoli): begin with ~0u; the result is not inverted. */
uint32_t crc32c(uint32_t crc, const void *data, size_t length);

/* Continues it with this many bytes of 0 (less than 4 GiB), in a time that depends on the logarithm
 * of their number. Two contents of one length that differ by D (XOR) have checksums that differ by
 * that of D, which begins with 0. */
uint32_t crc32c_zeros(uint32_t crc, size_t count);

/* Continues it over data in which the field of the checksum itself, `size` bytes (at most 4) from
 * `at` on, counts as 0. */
uint32_t crc32c_without(uint32_t crc, const void *data, size_t length, size_t at, size_t size);

/* Continues a CRC-32 of IEEE 802.3, bits not reversed: begin with ~0u; the result is not inverted.
 * Slow; only journals of version 1 of checksums need it. */
uint32_t crc32_big_endian(uint32_t crc, const void *data, size_t length);
