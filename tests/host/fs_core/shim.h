/* What the tests of the core's file layer share. */
#pragma once

#include "tests/host/fs/floors.h"

#define SHIM_SAID 512

extern const struct unit_test root_tests[], line_tests[];

/* What the kernel has printed last. */
extern char shim_said[SHIM_SAID];

/* What the host gives; is moved along as it is read. */
extern const uint8_t *shim_archive;
extern uint32_t shim_archive_length;
