; Says all that a boot sector can have to complain of, and stops.
%ifndef CHEAT
%define CHEAT
%macro cheat 1
%if __BITS__ == 16
	mov si, .complaint
	call print
	jmp stop
.complaint:
	db 13, 10, "cannot read stage 2, stage 2 is incomplete, status 00", 13, 10, 0
%endif
%endmacro
%endif
