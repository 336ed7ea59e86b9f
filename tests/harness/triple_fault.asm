; triple_fault.asm: an undefined instruction where no interrupt table exists.
%include "guest.inc"

main:
	mov si, text
	call print
	enter_protected_mode
	lidt [no_interrupts]
	call undefined
	jmp $

undefined:
	ud2

no_interrupts:
	dw 0
	dd 0
text:
	db "before the fault", 10, 0
boot_signature
