/* Block devices' ioctls: Linux's numbers and structures for i386. */
#pragma once

#include <stdint.h>

#define BLKROGET	 0x125e
#define BLKRRPART	 0x125f /* read the partition table again */
#define BLKGETSIZE	 0x1260 /* sectors, in 32 bits */
#define BLKFLSBUF	 0x1261
#define BLKRAGET	 0x1263 /* sectors that are read ahead, at most */
#define BLKSSZGET	 0x1268 /* bytes of a sector, as programs see it */
#define BLKDISCARD	 0x1277
#define BLKIOMIN	 0x1278
#define BLKIOOPT	 0x1279
#define BLKALIGNOFF	 0x127a
#define BLKPBSZGET	 0x127b /* bytes of a sector on the disk */
#define BLKDISCARDZEROES 0x127c
#define BLKSECDISCARD	 0x127d
#define BLKZEROOUT	 0x127f
#define BLKBSZGET	 0x80041270
#define BLKGETSIZE64	 0x80041272 /* bytes, in 64 bits */
#define HDIO_GETGEO	 0x0301
#define FITRIM		 0xc0185879 /* of a file system: discards its free blocks */

/* In bytes; `len` becomes how many were discarded. */
struct fstrim_range {
	uint64_t start, len, minlen;
};

struct linux_geometry {
	uint8_t heads, sectors;
	uint16_t cylinders;
	uint32_t start; /* sectors before a partition */
};
