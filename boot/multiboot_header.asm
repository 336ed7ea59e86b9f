; The Multiboot header: how a boot loader knows a kernel when it sees one (Multiboot 0.6.96, section
; 3.1).
;
; It must be 4-byte aligned and within the first 8 KiB of the file. boot/kernel.ld puts the
; section .multiboot first and keeps it, though nothing refers to it.

section .multiboot progbits alloc exec nowrite ; as .boot, which it goes into
	; EXERCISE 1.1 (the Multiboot header): three 32-bit words that tell a boot loader what this
	; is.
	; 1. The magic number 0x1badb002, at a multiple of four bytes.
	; 2. The flags: set bit 0, which asks for modules on page borders, and bit 1, which asks for
	;    a memory map. Set no other bit: bit 16 would promise addresses that are not here.
	; 3. A checksum that makes the sum of the three words zero, modulo 2^32.
	; SOLUTION 1.1 {
MAGIC	equ 0x1badb002
FLAGS	equ 0x00000003

	align 4
	dd MAGIC
	dd FLAGS
	dd -(MAGIC + FLAGS)
	; } SOLUTION 1.1
