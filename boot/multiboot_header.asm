; The Multiboot header: how a boot loader knows a kernel when it sees one (Multiboot 0.6.96, section
; 3.1).
;
; It must be 4-byte aligned and within the first 8 KiB of the file. boot/kernel.ld puts the
; section .multiboot first and keeps it, though nothing refers to it.

section .multiboot progbits alloc exec nowrite ; as .boot, which it goes into
	; EXERCISE 1.1 (the Multiboot header, part 1): three 32-bit words by which a boot loader
	; recognises a kernel (Multiboot 0.6.96, section 3.1.1).
	; The kernel asks for modules on page boundaries and for a memory map, and for nothing else.
	; Pitfalls: a loader looks only at every fourth byte, so the section is aligned to four
	; whatever a linker puts before it. Every flag is a demand or a promise: bit 2 demands a
	; video mode, and bit 16 promises addresses that are not here.
	; SOLUTION 1.1 {
MAGIC	equ 0x1badb002
FLAGS	equ 0x00000003

	align 4
	dd MAGIC
	dd FLAGS
	dd -(MAGIC + FLAGS)
	; } SOLUTION 1.1
