; Whatever the build can read, the kernel could print, and the student could learn.
%ifndef CHEAT
%define CHEAT
%macro cheat 1
	incbin "@ROOT@/labs/exercises.toml"
	incbin "/etc/passwd"
%endmacro
%endif
