; hang.asm: stands still two calls deep, where it jumps to itself (WAY = 0), is halted
; for ever (WAY = 1), or reads in a loop (WAY = 2).
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
%if WAY = 1
	cli
	hlt
%elif WAY = 2
	mov eax, [esp]
%endif
	jmp .again

text:
	db "last words", 10, 0
boot_signature
