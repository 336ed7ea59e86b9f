; Where every boot loader enters the kernel: Multiboot header, first stack, first page tables, higher half.
;
; On entry (Multiboot 0.6.96, section 3.2): EAX = magic, EBX = physical address of the information structure,
; flat segments, paging off, interrupts off, no stack. The section .boot is linked where it is loaded, at 1 MiB;
; everything else is linked 3 GiB above the place where it is loaded (boot/kernel.ld).

KERNEL_BASE	equ 0xc0000000
STACK_SIZE	equ 16384

MAGIC		equ 0x1badb002
FLAGS		equ 0x00000003		; modules on page borders, and a memory map please

LARGE_PAGE	equ 0x00400000		; 4 MiB
MAPPED		equ 896 * 0x100000	; how much physical memory the kernel sees at KERNEL_BASE
PAGE_FLAGS	equ 0x083		; present, writable, 4 MiB
CR4_PSE		equ 0x00000010
CR0_PG_WP	equ 0x80010000		; paging, and read-only pages are so for the kernel too

%define physical(address) ((address) - KERNEL_BASE)

section .boot
bits 32
	align 4
multiboot_header:
	dd MAGIC
	dd FLAGS
	dd -(MAGIC + FLAGS)

global _start
_start:
	cli
	cld
	mov edx, eax			; the magic, out of the way of what follows

	mov edi, physical(bss_start)	; a loader should have zeroed this; not every loader does
	mov ecx, physical(bss_end)
	sub ecx, edi
	xor eax, eax
	rep stosb

	; Page directory: the first 4 MiB where they are, so that the next instruction can be fetched once
	; paging is on, and the first 896 MiB of memory at KERNEL_BASE.
	mov edi, physical(kernel_page_directory)
	mov eax, PAGE_FLAGS
	mov [edi], eax
	add edi, KERNEL_BASE / LARGE_PAGE * 4
	mov ecx, MAPPED / LARGE_PAGE
.map:
	mov [edi], eax
	add eax, LARGE_PAGE
	add edi, 4
	loop .map

	mov eax, cr4
	or eax, CR4_PSE
	mov cr4, eax
	mov eax, physical(kernel_page_directory)
	mov cr3, eax
	mov eax, cr0
	or eax, CR0_PG_WP
	mov cr0, eax
	mov eax, higher_half
	jmp eax				; an absolute jump: the only way up

section .text
bits 32
extern kmain
extern bss_start
extern bss_end

higher_half:
	mov dword [kernel_page_directory], 0	; the way back down is closed: a null pointer must fault
	mov eax, cr3
	mov cr3, eax
	mov esp, boot_stack_top
	xor ebp, ebp			; the chain of frames, and with it every backtrace, ends here
	sub esp, 8			; with two arguments the stack is 16-byte aligned at the call
	push ebx
	push edx
	call kmain			; kmain(magic, physical address of the information)
.halt:
	cli
	hlt
	jmp .halt

section .bss
	align 4096
global kernel_page_directory
kernel_page_directory:
	resb 4096
global boot_stack
boot_stack:
	resb STACK_SIZE
global boot_stack_top
boot_stack_top:
