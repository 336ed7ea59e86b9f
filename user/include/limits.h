/* The ranges of the integer types, and how long a path may be. */
#pragma once

#include "kernel/abi/limits.h"

#define CHAR_BIT   8
#define INT_MAX	   __INT_MAX__
#define INT_MIN	   (-__INT_MAX__ - 1)
#define UINT_MAX   (__INT_MAX__ * 2u + 1)
#define LONG_MAX   __LONG_MAX__
#define LONG_MIN   (-__LONG_MAX__ - 1L)
#define ULONG_MAX  (__LONG_MAX__ * 2ul + 1)
#define LLONG_MAX  __LONG_LONG_MAX__
#define LLONG_MIN  (-__LONG_LONG_MAX__ - 1LL)
#define ULLONG_MAX (__LONG_LONG_MAX__ * 2ull + 1)
