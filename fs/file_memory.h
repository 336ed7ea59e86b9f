/* Files as areas map them. */
#pragma once

#include "fs/file.h"
#include "mm/memory_object.h"

/* The object with a file's pages, with one reference for the caller; NULL if the file cannot be
 * mapped, or without memory. The same object for everybody who has the file open. */
struct memory_object *file_memory(struct file *file);
