/* Linux's numbers for setpriority and getpriority: a process, a group or a user. */
#pragma once

#define PRIO_PROCESS 0
#define PRIO_PGRP    1
#define PRIO_USER    2
