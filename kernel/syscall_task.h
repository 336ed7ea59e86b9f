/* System calls about tasks: families, groups, and the scheduler. */
#pragma once

void syscall_task_register(void);
