; The second stage's 16-bit half: from the boot sector into protected mode, and back for each call
; to the BIOS.
;
; The rest of the second stage is C (boot/loader.c). It runs in 32-bit protected mode without
; paging, with flat segments, so a pointer is a physical address. The BIOS is 16-bit code for real
; mode. Each call therefore goes all the way back (Intel SDM volume 3, 9.9.2), and then forward
; again (9.9.1):
;
;	32-bit protected	bios_call saves its registers, jumps to a 16-bit segment
;	16-bit protected	loads segments with limits of 64 KiB, clears CR0.PE
;	real			far jump to load CS, segments 0, registers in by POPAD, the handler
;	real			registers out by PUSHAD
;	32-bit protected	by way of enter_protected_mode
;
; Interrupts are enabled only inside the handler. The stack is the same in all modes, below 64 KiB,
; and so is everything that real mode has to reach.

CODE16		equ 0x18		; selectors of the table in boot/protected_mode.asm
DATA16		equ 0x20
STACK		equ 0xfff0		; of both modes; it grows down to the end of the data

section .text.start progbits alloc exec nowrite
bits 16

; From the boot sector: CS = DS = ES = SS = 0, DL = the BIOS's number of the boot drive.
global stage2_start
stage2_start:
	mov [boot_drive], dl
	mov esp, STACK
	call enter_protected_mode
bits 32
	mov edi, stage2_bss		; C expects zeros in .bss; boot_drive is in .data
	mov ecx, stage2_bss_end
	sub ecx, edi
	xor eax, eax
	rep stosb
	movzx eax, byte [boot_drive]
	push eax
	call loader_main		; does not come back
.halt:
	cli
	hlt
	jmp .halt

; void bios_call(uint8_t vector, struct bios_registers *registers)
; Runs a BIOS interrupt in real mode, with the registers that the structure holds, and stores those
; that it returns, with the flags. The structure must be below 64 KiB.
global bios_call
bios_call:
	pushad				; the handler may change every register
	movzx eax, byte [esp + 36]
	mov eax, [eax * 4]		; the handler, from the real-mode vector table at 0
	mov [bios_handler], eax
	mov eax, [esp + 40]
	mov [bios_registers], ax
	jmp CODE16:.leave
bits 16
.leave:
	mov ax, DATA16			; 64 KiB limits: real mode keeps whatever limits it finds
	mov ds, ax
	mov es, ax
	mov fs, ax
	mov gs, ax
	mov ss, ax
	mov eax, cr0
	and al, 0xfe
	mov cr0, eax			; real mode, but CS is still a protected-mode one
	jmp 0x0000:.real
.real:
	xor ax, ax
	mov ds, ax
	mov es, ax
	mov fs, ax
	mov gs, ax
	mov ss, ax
	mov [stack], sp
	mov sp, [bios_registers]	; the structure is what POPAD and POPF take
	popad
	popf
	mov [bios_registers], sp	; its end, for the way back
	mov sp, [stack]
	sti
	pushf				; with the far call: INT, for a vector chosen at run time
	cli
	call far [bios_handler]
	cli
	cld
	mov sp, [cs:bios_registers]	; the handler may leave another DS
	pushf				; the carry flag says that it failed
	pushad
	xor ax, ax
	mov ds, ax
	mov sp, [stack]
	call enter_protected_mode
bits 32
	popad
	ret

; void jump_to_kernel(uint32_t entry, uint32_t magic, const void *information)
; Multiboot 0.6.96, section 3.2: the magic number in EAX, the information in EBX, flat segments,
; paging off. Does not return.
global jump_to_kernel
jump_to_kernel:
	mov ecx, [esp + 4]
	mov eax, [esp + 8]
	mov ebx, [esp + 12]
	jmp ecx

section .data
bios_handler:	dd 0			; offset, then segment
bios_registers:	dw 0
stack:		dw 0
boot_drive:	db 0

extern enter_protected_mode
extern loader_main
extern stage2_bss
extern stage2_bss_end
