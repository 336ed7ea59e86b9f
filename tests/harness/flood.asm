; flood.asm: fills the serial line without end.
%include "guest.inc"

main:
	mov si, text
	call print
	jmp main

text:
	times 60 db "x"
	db 10, 0
boot_signature
