/* System calls about signals. */
#pragma once

void syscall_signal_register(void);
