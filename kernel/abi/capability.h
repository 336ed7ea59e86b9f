/* Capabilities as programs see them: Linux's numbers. */
#pragma once

#define CAP_LAST_CAP 40

#define LINUX_CAPABILITY_VERSION_1 0x19980330u /* sets of one word; the others of two */
#define LINUX_CAPABILITY_VERSION_2 0x20071026u
#define LINUX_CAPABILITY_VERSION_3 0x20080522u

/* Besides the bits of personality(2), in struct files: what prctl was asked for. It is told again;
 * root has all rights anyway. */
#define FILES_KEEPS_RIGHTS  0x01000000u
#define FILES_NO_NEW_RIGHTS 0x02000000u
#define FILES_NOT_DUMPABLE  0x04000000u
#define FILES_RIGHTS	    0x07000000u
