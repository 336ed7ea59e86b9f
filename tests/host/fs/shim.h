/* What the tests of the file layer share: roots, and that nothing is left of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fs/file.h"
#include "fs/vfs/inode.h"
#include "kernel/abi/file.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/statx.h"
#include "kernel/abi/unistd.h"
#include "tests/host/fs/floors.h"

/* A new root directory, and the current task's table of descriptors in it. */
void shim_new_root(void);

/* Removes everything below a directory. */
void shim_remove_all(struct inode *directory);

/* Fails unless nothing but the roots, and this many pages, is allocated any more. */
void shim_require_no_leak(const char *after, uint32_t pages);

/* Pages that the file layer has, its tables included. */
uint32_t shim_ramfs_pages(void);

extern const struct unit_test names_tests[], data_tests[], archive_tests[], line_tests[],
    pipe_tests[];
