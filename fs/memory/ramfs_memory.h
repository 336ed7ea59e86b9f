/* Memory that is shared without a file. */
#pragma once

#include <stdint.h>

struct memory_object;

/* This many bytes of zeros, with one reference for the caller; NULL without memory. */
struct memory_object *ramfs_shared_memory(uint32_t length);
