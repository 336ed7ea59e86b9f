; In the trees of lesson 1 this is boot/protected_mode.asm.o: lesson 2's exercise must not be in an
; object that a student has before. So it does less than exercise 2.2 asks for, with a table in
; another order and in another place; boot/stage2.asm of these trees knows the order.
;
; It is enough for our own boot sector on QEMU's BIOS: the upper half of ESP is zero, nothing uses
; FS and GS, and no other bit of CR0 is set.

CODE16		equ 0x08
DATA16		equ 0x10
DATA32		equ 0x18
CODE32		equ 0x20

TABLE		equ 0x600		; conventional memory that nobody else uses
TABLE_BYTES	equ 40

section .text
bits 16
; Called by 16-bit code in real mode, with a near call and all segments 0. Returns to the same place
; in 32-bit protected mode: flat segments, interrupts disabled, the same stack.
global enter_protected_mode
enter_protected_mode:
	push cx
	push bx
	cli
	mov bx, TABLE_BYTES
.copy:
	mov al, [descriptors + bx - 1]
	mov [TABLE + bx - 1], al
	dec bx
	jnz .copy
	pop bx
	pop cx
	lgdt [place]
	mov eax, 0x11
	mov cr0, eax
	jmp CODE32:.flat
bits 32
.flat:
	mov eax, DATA32
	mov ss, eax
	mov es, eax
	mov ds, eax
	pop ax
	movzx eax, ax
	jmp eax

section .data
place:
	dw 0xff				; more than there is: nobody asks for what is beyond
	dd TABLE

descriptors:
	dq 0
	dq 0x00009a000000ffff		; CODE16
	dq 0x000092000000ffff		; DATA16
	dq 0x00cf92000000ffff		; DATA32
	dq 0x00cf9a000000ffff		; CODE32
