; In the trees of lesson 1 this is boot/paging.asm.o: lesson 2's exercise must not be in an object
; that a student has before. So paging is set up in another way than exercise 2.5 asks for: with
; physical address extension, 2 MiB pages and a third level (Intel SDM volume 3, 4.4).

%include "kernel/cpu/memory_layout.inc"	; KERNEL_BASE, DIRECT_MAP_SIZE

PAGE		equ 2 << 20
PAGE_FLAGS	equ 0x083		; present, writable, 2 MiB

%define physical(address) ((address) - KERNEL_BASE)

extern kernel_page_directory		; kernel/cpu/boot_memory.asm

section .boot
bits 32
; Comes from _start with physical addresses, goes on at the address in EBP with the linker's. Keeps
; EBX, EDX and EBP.
global enable_paging
enable_paging:
	mov ecx, DIRECT_MAP_SIZE / PAGE
	mov eax, (DIRECT_MAP_SIZE - PAGE) | PAGE_FLAGS
.map:					; from the last page down to the first
	mov [physical(kernel_page_directory) + ecx * 8 - 8], eax
	and dword [physical(kernel_page_directory) + ecx * 8 - 4], 0
	sub eax, PAGE
	loop .map

	mov esi, physical(quarters)	; the first and the last GiB are the same now
	mov cr3, esi
	mov esi, cr4
	bts esi, 5			; physical address extension
	mov cr4, esi
	mov esi, cr0
	bts esi, 31			; paging
	mov cr0, esi
	mov esi, above
	jmp esi

section .text
bits 32
above:
	and dword [quarters], 0		; and here the first GiB is gone
	mov esi, cr3
	mov cr3, esi
	jmp ebp

; A pointer for each GiB of addresses.
section .data align=32
	align 32
quarters:
	dd physical(kernel_page_directory) + 1, 0
	dd 0, 0
	dd 0, 0
	dd physical(kernel_page_directory) + 1, 0
