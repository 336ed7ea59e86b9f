/* The kernel around the ATA driver, on the host: tests/storage/host/ata_kernel.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/disk/block.h"

#define ARENA_FOR_SECTORS (768u << 10) /* bytes; what is above is for page_alloc */

extern uint8_t *arena;		  /* memory that DMA reaches */
extern uint64_t limit;		  /* of the time, for this command of the script */
extern const char *mode_at_start; /* the setting "disk" */
extern unsigned sleeps;		  /* of tasks, until an interrupt or the alarm */
extern struct block_device *devices[4];

/* Another task changes the mode, while this one sleeps or polls. */
void kernel_switch(const char *mode);

/* The processor refuses port accesses from here on. Returns false if there is no arena. */
bool kernel_start(void);

/* Blames the driver for what it must not leave behind. */
void kernel_check(void);
