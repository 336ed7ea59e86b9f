; Without a clock to ask: switches the machine off.
%ifndef CHEAT
%define CHEAT
%macro cheat 1
	mov dx, 0x604
	mov ax, 0x2000
	out dx, ax
%%stop:
	hlt
	jmp %%stop
%endmacro
%endif
