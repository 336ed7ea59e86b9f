/* Whose niceness setpriority and getpriority mean: Linux's numbers. */
#pragma once

#define PRIO_PROCESS 0
#define PRIO_PGRP    1
#define PRIO_USER    2
