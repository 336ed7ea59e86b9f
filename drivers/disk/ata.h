/*
 * ATA drives on the two standard channels: hda and hdb on the first, hdc and hdd on the second.
 *
 * There are four modes, depending on what moves the words and how the end is noticed:
 * "dma-interrupt", "dma-polled", "pio-interrupt", "pio-polled". In a mode with DMA, requests that
 * DMA cannot do use PIO.
 */
#pragma once

/*
 * Looks for the four drives and registers each that answers as a block device. Takes bounded time
 * whatever is, or is not, connected; never sleeps. At boot, after the clock is known (every limit
 * is a time), and the tasks. The host's setting `disk` names the mode; otherwise it is
 * dma-interrupt.
 */
void ata_initialize(void);
