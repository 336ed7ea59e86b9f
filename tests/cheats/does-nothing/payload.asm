; Goes on as if the blank were filled.
%ifndef CHEAT
%define CHEAT
%macro cheat 1
	nop
%endmacro
%endif
