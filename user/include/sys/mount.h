/* Commands to block devices. */
#pragma once

#define BLKGETSIZE64 0x80041272 /* the device's bytes, a uint64_t */
