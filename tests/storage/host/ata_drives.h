/* Two ATA channels, their drives and their bus master, as the ATA driver's port accesses see them:
 * ata_drives.c is what they do with commands, ata_ports.c how they are reached. Time is counted: an
 * access of a port takes 100 ns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CHANNELS 2

#define ERR 0x01
#define DRQ 0x08
#define DF  0x20
#define RDY 0x40
#define BSY 0x80

#define SETTLE	  450 /* ns in which STATUS is what it was before: four reads, not three */
#define PORT_TIME 100
#define WORKING	  20000 /* ns from a command, or a block, to the next block */
#define NO_LBA	  UINT64_MAX

/* A drive's settings are the script's; the rest is what a command has made of it. */
struct drive {
	bool is_there, has_lba48, has_dma, has_forced, has_trim;
	unsigned most_multiple; /* of SET MULTIPLE; 0: the drive has no blocks */
	uint32_t number;
	uint64_t sectors;

	uint64_t bad;	       /* this sector fails, with: */
	uint8_t bad_error;     /* the ERROR register; 0: DF */
	bool bad_write;	       /* when it is written; else when it is read */
	uint64_t late;	       /* the next command takes so long */
	uint64_t tail;	       /* so does the end of the next write */
	uint64_t stuck;	       /* so does each one for sectors, if it is not 0 */
	bool stalls;	       /* the next DMA comes to no end */
	unsigned bad_attempts; /* it fails so often; 0: always */
	bool refuses_multiple;

	uint8_t status, old_status, error;
	uint64_t valid_at; /* from then on STATUS is not old_status */
	uint64_t ready_at; /* it is busy until then; 0: it is not */
	uint64_t reset_until;
	bool is_moving; /* it has a command */
	bool is_write, is_dma, is_ranges;
	bool is_halfway;	  /* of its DMA: DRQ is set, and BSY is not */
	unsigned multiple, block; /* sectors of a block; of this one */
	unsigned left, words;	  /* sectors of the command; words of the block */
	uint64_t lba, first;
	uint16_t identity[256];
};

struct channel {
	struct drive drives[2];
	uint8_t registers[8], before[8]; /* as written last, and the time before */
	uint8_t control;
	bool is_interrupting, is_pending; /* the drive's wire; the interrupt controller's bit */
	bool is_gone;
	bool is_asked;		   /* a drive has got a command since the bus master was stopped */
	unsigned lose;		   /* this many interrupts get lost */
	bool fault;		   /* the next DMA fails */
	bool unplugs;		   /* so it does from the next command on */
	bool stray;		   /* an interrupt of nobody comes with the next command */
	uint64_t strays, stray_at; /* so does one each so many ns, while a drive works; 0: none */
	uint8_t master_command, master_status;
	uint32_t master_table;
	unsigned resets;
};

extern bool is_in_handler; /* the processor is in the driver's handler of an interrupt */
extern struct channel channels_of_model[CHANNELS];
extern uint64_t now;

/* Prints a line about what the driver did that a drive does not forgive. */
void blame(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What contents are made of: nobody who has not read them knows them. */
extern uint64_t secrets[2];

/* The word number i of a sector, as it is at first. */
uint32_t word_of(uint32_t drive, uint64_t lba, unsigned i);

/* A sector of a drive's contents, for reading or writing. */
uint32_t *sector_of(struct drive *drive, uint64_t lba);

/* ---- ata_drives.c ---- */

/* The drive that DEVICE names. */
struct drive *selected(struct channel *channel);

/* is_late: the old status is seen for 400 ns yet. */
void set_status(struct drive *drive, uint8_t status, bool is_late);

void interrupt(struct channel *channel);
bool is_bad(const struct drive *drive, uint64_t lba);

/* A command begins; goes on; ends because a sector cannot be read or written. */
void command_starts(struct channel *channel, struct drive *drive, uint8_t code);
void drive_works(struct drive *drive);

/* It has been at something else for a while, and will be for so long; it has data of a command that
 * somebody has given up. */
void drive_is_busy(struct drive *drive, uint64_t ns);
void drive_has_data(struct drive *drive);

void command_fails(struct channel *channel, struct drive *drive);

/* ---- ata_ports.c ---- */

uint32_t port_in(uint16_t port, unsigned size);
void port_out(uint16_t port, unsigned size, uint32_t value);

/* Lets drives do what is due. */
void drives_step(void);

/* When the next drive has something to say; UINT64_MAX: none works. */
uint64_t drives_next(void);

/* Is this memory? */
bool memory_has(uint32_t physical, uint32_t bytes);
