/* What the kernel tells a program at its start. */
#pragma once

#define AT_PAGESZ	6
#define AT_RANDOM	25
#define AT_EXECFN	31 /* the program's path */
#define AT_SYSINFO	32 /* the entry to the kernel by SYSENTER */
#define AT_SYSINFO_EHDR 33 /* the shared page, an ELF image */

/* The value of a tag, or 0. */
unsigned long getauxval(unsigned long tag);
