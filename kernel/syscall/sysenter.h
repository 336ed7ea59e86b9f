/* The fast way into a system call, and the user page that knows it. Intel SDM volume 2,
 * SYSENTER; volume 3, 5.8.7. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Programs the MSRs of SYSENTER, if the processor has that instruction. */
void sysenter_initialize(void);

/* Does the processor have SYSENTER? */
bool sysenter_is_there(void);

/* Addresses in the shared page (kernel/syscall/shared_page.asm), as programs see it: the stub that
 * makes a call, its end, and where SYSENTER's calls come back. */
extern const uint32_t shared_vsyscall, shared_vsyscall_end, shared_sysenter_return;

/* That page itself, which main.c passes to space_share (mm/space.h). Its first KiB is free. */
extern uint8_t shared_page[];
