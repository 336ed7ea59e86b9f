; The memory that boot/ sets up first, and that the kernel goes on using (boot_memory.h).

STACK_SIZE	equ 16384

section .bss
	alignb 4096
global kernel_page_directory
kernel_page_directory:
	resb 4096

	alignb 16
global boot_stack
boot_stack:
	resb STACK_SIZE
global boot_stack_top
boot_stack_top:
