; timestamp.asm: prints how long a loop takes by the time-stamp counter, with interrupts enabled.
%include "guest.inc"

ROUNDS equ 3000000

main:
	sti
	rdtsc
	mov ebp, eax
	mov ecx, ROUNDS
.spin:
	dec ecx
	jnz .spin
	rdtsc
	sub eax, ebp
	mov cx, 8
.digit:
	rol eax, 4
	push ax
	and al, 15
	add al, 'a'
	call put
	pop ax
	loop .digit
	mov al, 0
	jmp end_machine
boot_signature
