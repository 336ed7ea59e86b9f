; hang.asm: stands still two calls deep, in a loop (WAY = 0) or halted for ever (WAY = 1).
%include "guest.inc"

main:
	mov si, text
	call print
	enter_protected_mode
	xor ebp, ebp
	call outer
	jmp $

outer:
	push ebp
	mov ebp, esp
	call inner
	pop ebp
	ret

inner:
	push ebp
	mov ebp, esp
.again:
%if WAY
	cli
	hlt
%endif
	jmp .again

text:
	db "last words", 10, 0
boot_signature
