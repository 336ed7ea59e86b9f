/* The machine around the ATA driver, whose process is asked and asks: ata_kernel.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/storage/host/ata_talk.h"

extern uint64_t limit;	     /* of the time, for this command of the script */
extern unsigned sleeps;	     /* of tasks, until an interrupt or the alarm */
extern bool is_polled;	     /* since before this command: no interrupt should come */
extern bool waits_at_cli;    /* the next cli comes just after a drive's answer */
extern bool watches_wire;    /* a handler that leaves the drive's interrupt raised is blamed */
extern bool waits_at_status; /* the next STATUS that says BSY is read just before the answer */
extern bool has_started;     /* from here on only who has the channel uses its ports */
extern bool is_there[4];     /* the driver knows these drives */

/* What is printed from here on is no call of the driver. Returns false without pipes. */
bool kernel_start(void);

/* Makes the driver's process do this, and returns what it says in the end. */
int64_t call(uint32_t what, uint32_t first, uint32_t second, uint64_t value, const void *bytes,
	     uint32_t count);

/* Bytes of that process's memory. */
void memory_get(enum memory memory, uint32_t offset, void *bytes, uint32_t count);
void memory_put(enum memory memory, uint32_t offset, const void *bytes, uint32_t count);

/* Another task changes the mode, while this one sleeps or polls. */
void kernel_switch(const char *mode);

/* Blames the driver for what it must not leave behind. */
void kernel_check(void);
