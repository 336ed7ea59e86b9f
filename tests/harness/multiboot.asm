; multiboot.asm: a kernel for QEMU's -kernel; prints its command line and the size of its memory.
bits 32
global start, machine_exit_status

MAGIC equ 0x1badb002
FLAGS equ 2				; memory size, please

	align 4
	dd MAGIC, FLAGS, -(MAGIC + FLAGS)

start:
	mov esp, stack
	mov esi, [ebx + 16]		; the command line: the file's name, a space, the rest
	mov dx, 0x3f8
.print:
	lodsb
	test al, al
	jz .end
	out dx, al
	jmp .print
.end:
	mov eax, [ebx + 8]		; KiB above 1 MiB
	shr eax, 10
	inc eax
	mov [machine_exit_status], eax
	mov dx, 0x604
	mov ax, 0x2000
	out dx, ax
	jmp $

machine_exit_status:
	dd 0xffffffff
	times 64 db 0
stack:
