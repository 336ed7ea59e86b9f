/* Where every PC has its first serial port and its text screen, for code that runs before drivers
 * do. */
#pragma once

#define SERIAL_PORT	   0x3f8 /* National Semiconductor PC16550D data sheet, table II */
#define SERIAL_LINE_STATUS 0x3fd
#define SERIAL_CAN_SEND	   0x20

#define TEXT_SCREEN  0xb8000 /* a physical address; a character has two bytes */
#define TEXT_COLUMNS 80u
#define TEXT_LINES   25u
