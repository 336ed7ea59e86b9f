# What nasm does, with ld: the same on Linux and on the kernel.
cat >hello.asm <<'END'
section .text
global _start
_start:	mov eax, 4
	mov ebx, 1
	mov ecx, text
	mov edx, length
	int 0x80
	mov eax, 1
	mov ebx, 7
	int 0x80
section .data
text:	db "written by int 0x80", 10
length equ $ - text
END
nasm -f elf32 hello.asm && ld -m elf_i386 -o hello hello.o && ./hello; echo $?; nasm -f bin -o flat hello.asm; echo $?; nasm -E hello.asm | grep -c .; ndisasm -b 32 hello.o | head -3; echo 'bad line here now' | nasm -f bin -o x -; echo $?; nasm -v | cut -d' ' -f1-2
