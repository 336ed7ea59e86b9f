; From real mode into 32-bit protected mode. Intel SDM volume 3, 9.9.1 lists the steps.

CODE32		equ 0x08
DATA32		equ 0x10

section .text

bits 16
; Called by 16-bit code in real mode, with a near call and all segments 0. Returns to the same place
; in 32-bit protected mode: flat segments, interrupts disabled, the same stack.
global enter_protected_mode
enter_protected_mode:
	; EXERCISE 2.2 (entering protected mode): the caller is 16-bit code in real mode with all
	; segments 0; it continues in 32-bit code. Intel SDM volume 3, 9.9.1 lists the steps, and
	; their order matters.
	; Afterwards: interrupts disabled, the GDT register loaded from gdt_pointer, bit 0 of CR0
	; set, CS = CODE32, DS, ES, FS, GS and SS = DATA32, ESP = the old SP, and the return address
	; is off the stack. EAX may change; all other registers and the other bits of CR0 may not.
	; The IDT register stays as it is: each call of the BIOS needs the vectors of real mode
	; again.
	; Pitfalls: a segment register keeps its old meaning until it is loaded. The upper half of
	; ESP may be anything. The caller was 16-bit code: how large is its return address?
	; SOLUTION 2.2 {
	cli
	lgdt [gdt_pointer]
	mov eax, cr0
	or al, 1
	mov cr0, eax
	jmp CODE32:.protected
bits 32
.protected:
	mov ax, DATA32
	mov ds, ax
	mov es, ax
	mov fs, ax
	mov gs, ax
	mov ss, ax
	movzx esp, sp
	movzx eax, word [esp]
	add esp, 2
	jmp eax
	; } SOLUTION 2.2

section .data
	align 8
gdt:
	dq 0
	dq 0x00cf9a000000ffff		; CODE32: base 0, limit 4 GiB
	dq 0x00cf92000000ffff		; DATA32
	dq 0x00009a000000ffff		; CODE16: base 0, limit 64 KiB
	dq 0x000092000000ffff		; DATA16
gdt_end:

gdt_pointer:
	; EXERCISE 2.2 (entering protected mode, part 2): what LGDT loads: a 16-bit limit and a
	; 32-bit linear address.
	; Pitfall: a limit is the offset of the last byte.
	; SOLUTION 2.2 {
	dw gdt_end - gdt - 1
	dd gdt
	; } SOLUTION 2.2
