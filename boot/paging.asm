; The first page tables, and the way up into the higher half: from physical addresses to the
; linker's.
;
; Intel SDM volume 3: 4.1.1 (switching paging on), 4.3 (4 MB pages), 2.5 (control registers).

%include "kernel/cpu/memory_layout.inc"	; KERNEL_BASE, DIRECT_MAP_SIZE, LARGE_PAGE

MAPPED		equ DIRECT_MAP_SIZE	; how much physical memory the kernel sees at KERNEL_BASE
PAGE_FLAGS	equ 0x083		; present, writable, 4 MiB; for the kernel only
CR4_PSE		equ 0x00000010		; there are 4 MiB pages
CR0_PG_WP	equ 0x80010000		; paging, and read-only pages are so for the kernel too

%define physical(address) ((address) - KERNEL_BASE)

extern kernel_page_directory		; kernel/cpu/boot_memory.asm

section .boot
bits 32
; Comes from _start with physical addresses, goes on at the address in EBP with the linker's. Keeps
; EBX, EDX and EBP.
global enable_paging
enable_paging:
	; EXERCISE 2.5 (early paging, part 1 of 2): this code runs where it is loaded, at 1 MiB.
	; 1. Fill the page directory at physical(kernel_page_directory) with 4 MiB pages: entry 0
	;    maps the first 4 MiB where they are (the next instruction must still be there once
	;    paging is on), and the entries from KERNEL_BASE / LARGE_PAGE on map the first MAPPED
	;    bytes of memory.
	; 2. Allow 4 MiB pages in CR4. Load CR3: it takes a physical address.
	; 3. Switch paging on, and write protection with it, in CR0. In both registers the other
	;    bits stay as they are.
	; 4. Jump to paging_is_on: an absolute jump through a register, because a relative one
	;    would stay low.
	; SOLUTION 2.5 {
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
	mov eax, paging_is_on
	jmp eax
	; } SOLUTION 2.5

section .text
bits 32
paging_is_on:
	; EXERCISE 2.5 (early paging, part 2 of 2): close the way back down.
	; 1. Clear entry 0 of the page directory: a null pointer must fault.
	; 2. The processor may remember the old entry: load CR3 again.
	; SOLUTION 2.5 {
	mov dword [kernel_page_directory], 0
	mov eax, cr3
	mov cr3, eax
	; } SOLUTION 2.5
	jmp ebp
