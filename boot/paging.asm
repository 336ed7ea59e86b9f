; The first page tables, and the way up into the higher half: from physical addresses to the
; linker's.
;
; Intel SDM volume 3: 4.1.1 (switching paging on), 4.3 (4 MB pages), 2.5 (control registers).

%include "kernel/cpu/memory_layout.inc"	; KERNEL_BASE, DIRECT_MAP_SIZE, LARGE_PAGE

MAPPED		equ DIRECT_MAP_SIZE	; how much physical memory the kernel sees at KERNEL_BASE
PAGE_FLAGS	equ 0x083		; present, writable, 4 MiB; for the kernel only
CR4_PSE		equ 0x00000010		; allow 4 MiB pages
CR0_PG_WP	equ 0x80010000		; paging; read-only pages bind the kernel, too

%define physical(address) ((address) - KERNEL_BASE)

extern kernel_page_directory		; kernel/cpu/boot_memory.asm

section .boot
bits 32
; Called by _start with physical addresses, continues at the address in EBP with the linker's. Keeps
; EBX, EDX and EBP.
global enable_paging
enable_paging:
	; EXERCISE 2.5 (early paging, part 1 of 2): this code runs where it is loaded, at 1 MiB,
	; without a stack. Intel SDM volume 3, 4.3 has the format of an entry.
	; Fills kernel_page_directory with 4 MiB pages: entry 0 maps the first 4 MiB to themselves,
	; and the entries from KERNEL_BASE / LARGE_PAGE on map the first MAPPED bytes of memory; all
	; have PAGE_FLAGS. Enables 4 MiB pages (CR4), paging and write protection (CR0), and
	; continues at paging_is_on, at its linked address.
	; Pitfalls: before paging, an address is physical, and CR3 always takes a physical one. The
	; other bits of CR0 and CR4 stay as they are. EBX, EDX and EBP belong to the caller. The
	; instruction after the one that enables paging is fetched through the new tables.
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
	; EXERCISE 2.5 (early paging, part 2 of 2): remove entry 0 from the page directory: a null
	; pointer must fault.
	; Pitfall: the TLB may still hold the old translation.
	; SOLUTION 2.5 {
	mov dword [kernel_page_directory], 0
	mov eax, cr3
	mov cr3, eax
	; } SOLUTION 2.5
	jmp ebp
