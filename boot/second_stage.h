/* Where the second stage is, for the boot sector that reads it and for the linker that places it.
 */
#pragma once

#define STAGE2_ADDRESS 0x8000
#define STAGE2_MAGIC   0x32475453 /* "STG2": its last four bytes */
