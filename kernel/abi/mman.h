/* Mapping memory: Linux's numbers for i386. */
#pragma once

#define PROT_NONE  0
#define PROT_READ  1
#define PROT_WRITE 2
#define PROT_EXEC  4

#define MAP_SHARED	    0x01
#define MAP_PRIVATE	    0x02
#define MAP_FIXED	    0x10
#define MAP_ANONYMOUS	    0x20
#define MAP_LONG_KNOWN	    0x7f900 /* other flags, which old kernels took as well */
#define MAP_FIXED_NOREPLACE 0x100000

#define MREMAP_MAYMOVE 1
#define MREMAP_FIXED   2

#define MS_ASYNC      1
#define MS_INVALIDATE 2
#define MS_SYNC	      4

/* Flags of memfd_create, and how long a name may be. */
#define MFD_CLOEXEC	  1u
#define MFD_ALLOW_SEALING 2u
#define MFD_NAME_MAX	  249u
