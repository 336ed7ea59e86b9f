/* How programs call Linux's kernel on an i386: INT SYSCALL_VECTOR, with a number from numbers.h. */
#pragma once

#define SYSCALL_VECTOR 0x80
