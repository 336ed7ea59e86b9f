/* The trace of disk requests as a file, /dev/disktrace. */
#pragma once

/* Once, at start-up. */
void trace_file_initialize(void);
