; The assembler writes its map where it is told: over the build, and over the reference.
%ifndef CHEAT
%define CHEAT
%macro cheat 1
%ifidn __OUTPUT_FORMAT__, bin
	[map symbols Makefile]
	[map all @ROOT@/build/objects/@FILE@.o]
%endif
	hlt
%endmacro
%endif
