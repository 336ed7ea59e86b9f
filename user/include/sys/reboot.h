/* Ending the machine. */
#pragma once

#define RB_AUTOBOOT  0x01234567
#define RB_POWER_OFF 0x4321fedc

/* Does not return when it succeeds. */
int reboot(int command);
