/* The numbers of Linux's reboot call. */
#pragma once

/* Its first two arguments. */
#define LINUX_REBOOT_MAGIC1 0xfee1deadu
#define LINUX_REBOOT_MAGIC2 672274793u

#define RB_AUTOBOOT    0x01234567
#define RB_POWER_OFF   0x4321fedc
#define RB_HALT_SYSTEM 0xcdef0123
