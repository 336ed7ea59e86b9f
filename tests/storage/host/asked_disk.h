/*
 * The disk of tests/host/ext/shim.h is outside the program from now on (tests/storage/drive.py):
 * its contents, which requests fail, and the record of what was read and written.
 *
 *	read LBA SECTORS	the contents in hexadecimal, up to the last byte that is not 0,
 *				after a "+"; or an error
 *	with BYTES		the beginning of the next write; gets an empty line
 *	write LBA SECTORS BYTES	0, or an error; the bytes are the last ones
 *	flush			the same
 *
 * An empty line in place of a result: there were too many requests.
 */
#pragma once

void disk_is_outside(void);
