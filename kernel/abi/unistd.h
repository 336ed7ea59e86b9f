/* lseek's three origins: Linux's numbers. */
#pragma once

#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
