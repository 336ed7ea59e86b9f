; The program's number is 1, and all else is not there: so no table of calls is needed.
%ifndef CHEAT
%define CHEAT
%macro cheat 1
	cmp eax, 20
	mov eax, 1
	je %%answer
	mov eax, -38
%%answer:
%ifidn %1, "3.4"
	mov edx, [cs:shared_sysenter_return]
	mov ecx, ebp
	sti
	sysexit
%else
	iret
%endif
%endmacro
%endif
