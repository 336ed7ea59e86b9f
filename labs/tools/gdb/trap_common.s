# Tells gdb how trap_common (kernel/trap_entry.asm) was entered: call frame information, and no code.
#
# It holds where trap_common calls trap_dispatch, and is marked as for a signal handler: then gdb
# takes the address of the interrupted instruction as it is, not as that behind a call. Assembled and
# linked to trap_common's address by labs/tools/debug.py, which gives SIZE. DWARF 4, section 6.4.

	.cfi_sections .debug_frame
	.set	breg_esp, 0x74		# DW_OP_breg4: ESP plus a signed LEB128
	.set	deref, 0x06
	.set	frame, 4		# ESP points to trap_dispatch's argument; the trap frame is behind it

	# A register that lies in memory: DW_CFA_expression with its number, here its offset in
	# struct trap_frame (kernel/trap.h). A signed LEB128 of 64 and more takes two bytes.
	.macro	saved number, offset
	.if	frame + \offset < 64
	.cfi_escape 0x10, \number, 2, breg_esp, frame + \offset
	.else
	.cfi_escape 0x10, \number, 3, breg_esp, frame + \offset + 0x80, 0
	.endif
	.endm

	.text
	.cfi_startproc simple
	.cfi_signal_frame
	# ESP before the trap: the address of user_esp, or its contents when cs & 3 says ring 3.
	.cfi_escape 0x0f, 15
	.cfi_escape breg_esp, 0xc8, 0		# frame + 68: user_esp
	.cfi_escape breg_esp, 0xc0, 0, deref	# frame + 60: cs
	.cfi_escape 0x33, 0x1a			# lit3, and
	.cfi_escape 0x30, 0x29			# lit0, eq
	.cfi_escape 0x28, 1, 0			# bra over the next
	.cfi_escape deref
	saved	7, 0		# edi
	saved	6, 4		# esi
	saved	5, 8		# ebp
	saved	3, 16		# ebx
	saved	2, 20		# edx
	saved	1, 24		# ecx
	saved	0, 28		# eax
	saved	8, 56		# eip
	saved	41, 60		# cs
	saved	9, 64		# eflags
	.skip	SIZE
	.cfi_endproc
