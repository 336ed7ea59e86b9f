; The code that the command `probe` runs in user mode: each snippet is copied to a user page and run
; there.
;
;	mov eax, [esp]		the argument, on top of the stack
;	...			the snippet
;	ud2			ends a snippet that nothing has stopped
;
; The vector tells what happened: 13 means a privileged instruction, 14 a page fault, 6 at the end
; that it was allowed. The code is position independent: no snippet may jump to a label outside
; itself, or refer to data.

%macro begin_probe 1			; name; then instructions, and end_probe
%push probe
section .rodata
	dd %$name, %$code, %$end - %$code
section .data
%$name:	db %1, 0
section .text
%$code:	mov eax, [esp]
%endmacro

%macro end_probe 0
	ud2
%$end:
%pop
%endmacro

%macro probe 2+				; name, the one instruction
	begin_probe %1
	%2
	end_probe
%endmacro

bits 32
section .rodata
	align 4
global probe_table			; struct probe, in labs/lesson2/probes.c
probe_table:

probe "nothing", nop
probe "cli", cli
probe "sti", sti
probe "hlt", hlt
probe "int3", int3
probe "int", int 0x40
probe "undefined", ud2
probe "cr0", mov ecx, cr0
probe "cr3", mov cr3, eax
probe "clts", clts
probe "lgdt", lgdt [esp]
probe "lidt", lidt [esp]
probe "ltr", ltr ax
probe "wrmsr", wrmsr
probe "invlpg", invlpg [eax]
probe "segment", mov es, ax
probe "stack", mov ss, ax
probe "read", mov ecx, [eax]
probe "write", mov [eax], eax
probe "jump", jmp eax
probe "far", jmp 0x08:0x08000000	; the kernel's code segment

; Several instructions.
begin_probe "in"
	mov edx, eax
	in al, dx
	end_probe

begin_probe "in16"		; two ports at once
	mov edx, eax
	in ax, dx
	end_probe

begin_probe "out"
	mov edx, eax
	out dx, al
	end_probe

begin_probe "divide"
	xor ecx, ecx
	xor edx, edx
	div ecx
	end_probe

begin_probe "flags"		; tries to give itself the I/O privilege, then looks
	pushf
	or dword [esp], 0x3000
	popf
	pushf
	pop eax
	end_probe

begin_probe "work"		; counts; the timer interrupts it a few times
	xor eax, eax
%$count:
	inc eax
	cmp eax, 50000000
	jne %$count
	end_probe

section .rodata
	dd 0, 0, 0			; the end of the table
