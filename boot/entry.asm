; Where every boot loader enters the kernel: clear the BSS, enable paging, set up a stack, call C.
;
; On entry (Multiboot 0.6.96, section 3.2): EAX = magic, EBX = physical address of the information
; structure, flat segments, paging off, interrupts disabled, no stack. The section .boot is linked
; where it is loaded, at 1 MiB; everything else is linked 3 GiB above the place where it is loaded
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
	; EXERCISE 1.2 (the first instructions, part 1 of 2): paging is off, so a symbol's address
	; is physical(symbol), and there is no stack.
	; Afterwards interrupts are disabled, string instructions count up, EDX holds the magic
	; number that the loader left in EAX, EBX is what it was, and every byte from bss_start up
	; to bss_end is 0. enable_paging keeps EBX and EDX.
	; Pitfalls: the loader may have left any flags. An interrupt that comes finds no handler, so
	; one of the first four instructions disables them. The length of the BSS may be any number,
	; and no byte after it may change. A variable may itself be in the BSS.
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
	; Calls kmain(magic, information) as a C function is called (System V ABI for i386, section
	; 2.2): arguments on the stack, the first one on top, the stack aligned to 16 bytes at the
	; call. The stack begins at boot_stack_top. EBP is 0, because the chain of stack frames ends
	; here (exercise 1.6 follows it).
	; Pitfalls: a stack grows down. Two arguments are 8 bytes.
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
