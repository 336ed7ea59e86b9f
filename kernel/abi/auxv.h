/* The auxiliary vector, which a program finds on its stack. System V ABI i386, figure 3-33, and
 * Linux. */
#pragma once

#define AT_NULL	   0
#define AT_PAGESZ  6
#define AT_EXECFN  31
#define AT_SYSINFO 32
