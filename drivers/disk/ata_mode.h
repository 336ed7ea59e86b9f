/* The mode of the ATA drives: see drivers/disk/ata.h. */
#pragma once

/* Changes the mode of all drives: each channel as soon as its request has ended. Returns 0, or
 * -EINVAL for an unknown name. May sleep. */
int ata_set_mode(const char *name);

/* The name of the mode. */
const char *ata_mode(void);
