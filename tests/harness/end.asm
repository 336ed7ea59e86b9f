; end.asm: prints TEXT and ends the machine with STATUS.
%include "guest.inc"

main:
	mov si, text
	call print
	mov al, STATUS
	jmp end_machine

text:
	db TEXT, 0
boot_signature
