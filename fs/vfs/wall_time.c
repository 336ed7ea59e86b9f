/*
 * The time of day, for files and for the calls that tell it: the kernel's clock, and what the
 * real-time clock of the PC showed when it was asked first (Motorola MC146818A data sheet).
 *
 * 64 and more bytes of battery-backed memory, reached one at a time through an index and a data
 * port. The first ten are the clock, which updates them once a second; for up to 2 ms they are
 * not valid. Numbers are decimal digits, four bits each, unless status B says otherwise:
 *
 *	0x59 in the minute register is 59, not 89		(binary-coded decimal)
 *	0x92 in the hour register, 12-hour mode, is 12 p.m.	(bit 7: afternoon)
 *
 * The year has two digits, taken for 2000 to 2099. Read once; the kernel's clock runs on alone
 * afterwards, so the two drift apart as a PC's clocks do. No other code may use port 0x70, because
 * index and data are two accesses. For the current task.
 */
#include "fs/vfs/wall_time.h"

#include <stdbool.h>

#include "kernel/cpu/io.h"
#include "kernel/task/time.h"

#define INDEX	    0x70
#define DATA	    0x71
#define SECOND	    0
#define MINUTE	    2
#define HOUR	    4
#define DAY	    7
#define MONTH	    8
#define YEAR	    9
#define STATUS_A    10
#define STATUS_B    11
#define UPDATING    0x80 /* in status A: the other registers are about to change */
#define BINARY	    0x04 /* in status B: numbers are not in decimal digits */
#define HOURS_24    0x02
#define AFTERNOON   0x80 /* in the hour, without HOURS_24 */
#define NANOSECONDS 1000000000ull
#define TRIES	    100000 /* an update takes 2 ms */

/* Bit 7 of the index port masks the NMI on a PC: an index below 128 leaves it enabled. */
static uint8_t rtc_read(uint8_t index)
{
	out8(INDEX, index);
	return in8(DATA);
}

/* Decimal digits or binary, as the firmware has set it. */
static unsigned rtc_number(uint8_t value)
{
	return rtc_read(STATUS_B) & BINARY ? value : (value >> 4) * 10 + (value & 15);
}

/* On a 12-hour clock midnight and noon are 12, and 1 p.m. is 1 with bit 7. */
static unsigned rtc_hour(void)
{
	uint8_t value = rtc_read(HOUR);

	if (rtc_read(STATUS_B) & HOURS_24)
		return rtc_number(value);
	return rtc_number(value & ~AFTERNOON) % 12 + (value & AFTERNOON ? 12 : 0);
}

/* Days from the beginning of 1970 to a date of 2000 to 2099: a leap year each four years. */
static uint32_t days_since_1970(unsigned year, unsigned month, unsigned day)
{
	static const uint16_t before[12] = {
		0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334
	};
	bool leap_day_is_past = year % 4 == 0 && month > 2;

	return 10957 + year * 365 + (year + 3) / 4 + before[(month - 1) % 12] + day - 1 +
	       leap_day_is_past;
}

/* Waits until no update is under way; the next one is at least 244 microseconds away then, enough
 * for six registers on real hardware. An interrupt in between could spoil that: right to a second
 * or so. */
static uint32_t seconds_since_1970(void)
{
	for (unsigned tries = 0; tries < TRIES; tries++)
		if (!(rtc_read(STATUS_A) & UPDATING))
			break;
	uint32_t date = days_since_1970(rtc_number(rtc_read(YEAR)), rtc_number(rtc_read(MONTH)),
					rtc_number(rtc_read(DAY)));

	return ((date * 24 + rtc_hour()) * 60 + rtc_number(rtc_read(MINUTE))) * 60 +
	       rtc_number(rtc_read(SECOND));
}

static uint64_t origin; /* the time of day when the kernel's clock began */

uint64_t time_wall_ns(void)
{
	if (!origin)
		origin = seconds_since_1970() * NANOSECONDS - time_ns();
	return origin + time_ns();
}

void time_wall_set(uint64_t ns)
{
	origin = ns - time_ns();
}
