/* Where lseek counts from, and what access asks for: Linux's numbers. */
#pragma once

#define SEEK_SET  0
#define SEEK_CUR  1
#define SEEK_END  2
#define SEEK_DATA 3
#define SEEK_HOLE 4

#define F_OK 0
#define X_OK 1
#define W_OK 2
#define R_OK 4
