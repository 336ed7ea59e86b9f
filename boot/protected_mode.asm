; From real mode into 32-bit protected mode. Intel SDM volume 3, 9.9.1 lists the steps.

CODE32		equ 0x08
DATA32		equ 0x10

section .text

bits 16
; Called by 16-bit code in real mode, with a near call and all segments 0. Returns to the same place
; in 32-bit protected mode: flat segments, interrupts off, the same stack.
global enter_protected_mode
enter_protected_mode:
	; EXERCISE 2.2 (entering protected mode): six steps, and the order matters. EAX is yours;
	; all other registers are the caller's.
	; 1. Interrupts off: the vectors of real mode mean nothing from here on. Leave the IDT
	;    register alone: each call of the BIOS needs them again.
	; 2. Load the GDT register from gdt_pointer, at the end of this file; complete that too.
	; 3. Set bit 0 of CR0, and keep its other bits.
	; 4. At once, a far jump to CODE32: CS keeps its old meaning until it is loaded again.
	; 5. Now in 32-bit code: load DS, ES, FS, GS and SS with DATA32, and clear the upper half of
	;    ESP: the BIOS may have left anything in it.
	; 6. Return: the caller was 16-bit code, so its return address is two bytes on the stack,
	;    not four.
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
	; EXERCISE 2.2 (entering protected mode, part 2): what LGDT loads. A 16-bit limit, which is
	; the offset of the table's last byte, and the table's 32-bit linear address.
	; SOLUTION 2.2 {
	dw gdt_end - gdt - 1
	dd gdt
	; } SOLUTION 2.2
