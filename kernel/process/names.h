/* The texts that uname(2) returns. */
#pragma once

#define SYSTEM_NAME 65 /* bytes of each text, with its NUL */

/* Linux's struct new_utsname. */
struct linux_names {
	char system[SYSTEM_NAME], node[SYSTEM_NAME], release[SYSTEM_NAME];
	char version[SYSTEM_NAME], machine[SYSTEM_NAME], domain[SYSTEM_NAME];
};

extern struct linux_names system_names;
