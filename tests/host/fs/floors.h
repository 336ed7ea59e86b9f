/* What the tests of the file layer share: the kernel's lower floors, as a program can have them. */
#pragma once

#include <stdint.h>

#include "tests/host/unit.h"

/* Memory: how many pages may still be allocated, and how many are out. */
extern uint32_t shim_pages_left, shim_pages_out;

/* Buffers with is_user set fault behind this many more bytes. */
extern uint32_t shim_bytes_until_fault;

/* What the kernel has printed last. */
#define SHIM_SAID 512
extern char shim_said[SHIM_SAID];

/* What the host gives; is moved along as it is read. */
extern const uint8_t *shim_archive;
extern uint32_t shim_archive_length;

/* Of the program: its tests, up to a NULL, and what is to be done before one. */
extern const struct unit_test *const shim_suites[];
void shim_begin(void);
