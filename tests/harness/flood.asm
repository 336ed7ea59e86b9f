; flood.asm: LINES lines of sixty x on the serial line, or lines without end if LINES is 0. It does
; not wait for the port.
%include "guest.inc"

main:
	mov cx, LINES
.next:
	mov si, text
	call print
	dec cx
	jnz .next
%if LINES
	mov al, 0
	jmp end_machine
%else
	jmp main
%endif

text:
	times 60 db "x"
	db 10, 0
boot_signature
