/*
 * The one task there is until lesson 4: it is whatever the kernel is doing, and runs one
 * program after another (kernel/process/single.c).
 */
#include "kernel/task/task.h"

static struct task task = { .pid = 1, .name = "kernel" };
struct task *current = &task;
