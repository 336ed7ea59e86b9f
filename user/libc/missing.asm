; exercise_missing(number): a blank of a program was reached. It says so, and ends the program.

; From the C header of the same name.
%include "kernel/abi/numbers.inc"

STATUS		equ 63			; as the kernel's own stubs end

section .text
bits 32

global exercise_missing
exercise_missing:
	mov edi, [esp + 4]
	mov ecx, before
	mov edx, between - before
	call put
	mov ecx, edi
	mov edx, 3			; "3.2"
	cmp byte [edi], 'S'
	je storage
	call put
	mov ecx, between
	mov edx, after - between
	call put
	mov ecx, edi
	mov edx, 1			; the lesson
	jmp rest
storage:
	cmp byte [edi + 2], 1		; "S6", or "S10"
	sbb edx, 0
	call put
	mov ecx, of_storage
	mov edx, end - of_storage
rest:	call put
	mov ecx, after
	mov edx, of_storage - after
	call put
	mov ebx, STATUS
	mov eax, SYS_exit
	int 0x80

; Writes edx bytes at ecx to the standard error.
put:
	mov ebx, 2
	mov eax, SYS_write
	int 0x80
	ret

section .rodata
before:		db 10, "exercise "
between:	db " is not written yet (labs/lesson"
after:		db "/README.md)", 10
of_storage:	db " is not written yet (labs/storage"
end:

section .note.GNU-stack noalloc noexec nowrite progbits
