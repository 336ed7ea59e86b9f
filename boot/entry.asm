; Where every boot loader enters the kernel: clear the BSS, enable paging, take a stack, call C.
;
; On entry (Multiboot 0.6.96, section 3.2): EAX = magic, EBX = physical address of the information
; structure, flat segments, paging off, interrupts off, no stack. The section .boot is linked where
; it is loaded, at 1 MiB; everything else is linked 3 GiB above the place where it is loaded
; (boot/kernel.ld).

%include "kernel/cpu/memory_layout.inc"	; KERNEL_BASE

%define physical(address) ((address) - KERNEL_BASE)

extern enable_paging
extern kmain
extern bss_start
extern bss_end
extern boot_stack_top			; kernel/cpu/boot_memory.asm

section .boot
bits 32
global _start
_start:
	; EXERCISE 1.2 (the first instructions, part 1 of 2): before paging, so with physical
	; addresses.
	; 1. Interrupts stay off, and string instructions go up, whatever the loader has left.
	; 2. Move the magic number out of EAX to EDX: the next step needs EAX.
	; 3. Zero the BSS, from physical(bss_start) up to physical(bss_end): every byte of it, and
	;    not one more. Its length may be any number.
	;
	; EBX and EDX must keep their values until kmain is called; enable_paging leaves them alone.
	; SOLUTION 1.2 {
	cli
	cld
	mov edx, eax

	mov edi, physical(bss_start)	; a loader should have zeroed this; not every loader does
	mov ecx, physical(bss_end)
	sub ecx, edi
	xor eax, eax
	rep stosb
	; } SOLUTION 1.2
	mov ebp, higher_half		; where to go on, 3 GiB up
	jmp enable_paging		; boot/paging.asm

section .text
bits 32
global higher_half:function		; for debuggers
higher_half:
	; EXERCISE 1.2 (the first instructions, part 2 of 2): now addresses are what the linker
	; says.
	; 1. Take the whole stack: ESP = boot_stack_top.
	; 2. EBP = 0: the chain of stack frames ends here (exercise 1.6 follows it).
	; 3. Call kmain(magic, information) as C does: the last argument is pushed first, and the
	;    stack is 16-byte aligned at the call.
	; SOLUTION 1.2 {
	mov esp, boot_stack_top
	xor ebp, ebp			; here the chain of frames ends, and every backtrace
	sub esp, 8			; with two arguments the stack is 16-byte aligned
	push ebx
	push edx
	call kmain			; kmain(magic, physical address of the information)
	; } SOLUTION 1.2
.halt:
	cli
	hlt
	jmp .halt
