/* Mounting: Linux's flags of mount(2) and umount2(2). */
#pragma once

#define MS_RDONLY      1u
#define MS_NOSUID      2u
#define MS_NODEV       4u
#define MS_NOEXEC      8u
#define MS_SYNCHRONOUS 16u
#define MS_REMOUNT     32u
#define MS_DIRSYNC     128u
#define MS_NOATIME     1024u
#define MS_NODIRATIME  2048u
#define MS_SILENT      32768u
#define MS_RELATIME    (1u << 21)
#define MS_STRICTATIME (1u << 24)
#define MS_LAZYTIME    (1u << 25)
#define MS_MAGIC       0xc0ed0000u /* in the upper half, from very old programs */
#define MS_MAGIC_MASK  0xffff0000u

#define MNT_FORCE	1u
#define UMOUNT_NOFOLLOW 8u
