/* ATA drives on the two standard channels: hda and hdb on the first, hdc and hdd on the second. */
#pragma once

/*
 * Looks for the four drives and registers each that answers as a block device. Takes bounded time
 * whatever is, or is not, connected. After the clock is known: every limit is a time.
 */
void ata_initialize(void);
