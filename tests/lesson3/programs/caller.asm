; A program that tests drive from outside: places where a call is made, and memory to point to. Each
; place is followed by a loop, in which the test finds it again. tests/lesson3/caller.py knows the
; addresses.

bits 32
BASE	equ 0x08048000
DATA	equ 0x08050000
SIZE	equ 0x20000			; of all of it in memory
org BASE

	db 0x7f, "ELF", 1, 1, 1
	times 9 db 0
	dw 2, 3				; an executable, for the 386
	dd 1, start, 52, 0, 0		; version, entry, program headers
	dw 52, 32, 1, 40, 0, 0
	dd 1, 0, BASE, BASE, end - BASE, SIZE, 7, 4096

	times 0x100 - ($ - $$) db 0
start:
	jmp start

	times 0x110 - ($ - $$) db 0
gate:					; 0x08048110
	int 0x80
after_gate:				; 0x08048112
	jmp after_gate

	times 0x120 - ($ - $$) db 0
fast:					; 0x08048120
	db 0x0f, 0x34			; SYSENTER

	times 0x130 - ($ - $$) db 0
; Makes ESI calls of getpid, with the arguments EDX + n, then goes on at after_gate.
many:					; 0x08048130
	mov eax, 20
	int 0x80
	inc edx
	dec esi
	jnz many
	jmp after_gate

	times 0x140 - ($ - $$) db 0
; Closes all files, from EBX down.
close:					; 0x08048140
	mov eax, 6
	int 0x80
	dec ebx
	jns close
	jmp after_gate

	times 0x150 - ($ - $$) db 0
; ESI random calls: xorshift in EDI, numbers below 512, arguments of all sizes. Keeps the results'
; sum in [sum]. Calls that end the program, or take the machine away, are left out, and so are
; those that wait for somebody: their numbers stand in [refused], a bit each.
randoms:				; 0x08048150
	mov [left], esi
	mov [state], edi
.next:
	call random
	and eax, 511
	bt [refused], eax
	jc .next
	push eax
	call random_argument
	mov ebp, eax
	call random_argument
	mov edi, eax
	call random_argument
	mov esi, eax
	call random_argument
	mov edx, eax
	call random_argument
	mov ecx, eax
	call random_argument
	mov ebx, eax
	pop eax
	int 0x80
	rol dword [sum], 5
	add [sum], eax
	dec dword [left]
	jnz .next
	jmp after_gate

; EAX: 32 random bits.
random:
	mov eax, [state]
	shl eax, 13
	xor eax, [state]
	mov [state], eax
	shr eax, 17
	xor eax, [state]
	mov [state], eax
	shl eax, 5
	xor eax, [state]
	mov [state], eax
	ret

; EAX: a word of the table of bad and good values, a small number, or a large one.
random_argument:
	call random
	mov ecx, eax
	shr ecx, 28
	cmp ecx, 10
	jb .from_table
	cmp ecx, 14
	jb .small
	call random
	or eax, 0x80000000		; never the program's own code
	ret
.from_table:
	and eax, 31
	mov eax, [values + 4 * eax]
	ret
.small:
	and eax, 15
	ret

	align 4, db 0
sum:	dd 0
state:	dd 0
left:	dd 0
refused: times 16 dd 0			; filled in by the test
values:	times 32 dd 0
end:
