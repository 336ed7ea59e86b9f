# Tells gdb how the kernel was entered: call frame information, and no code.
#
# It holds for the calls in the kernel's assembly that pass C a struct trap_frame (kernel/cpu/trap.h):
# its address is on top of the stack there. It is marked as for a signal handler: then gdb takes the
# address of the interrupted instruction as it is, not as that behind a call. labs/tools/debugging/debug.py
# adds a line `entry OFFSET` for each such call, assembles this, and links it to the address from
# which the offsets count. DWARF 4, section 6.4.

	.cfi_sections .debug_frame
	.set	breg_esp, 0x74		# DW_OP_breg4: ESP plus a signed LEB128
	.set	deref, 0x06
	.set	plus, 0x23		# DW_OP_plus_uconst
	.set	BYTES, 6		# of the call, and one more: gdb looks up both ends

	# A register that lies in the frame: DW_CFA_expression with its number.
	.macro	saved number, offset
	.cfi_escape 0x10, \number, 5, breg_esp, 0, deref, plus, \offset
	.endm

	.macro	entry offset
	.org	\offset
	.cfi_startproc simple
	.cfi_signal_frame
	# ESP before: the address of user_esp, or its contents when cs & 3 says ring 3.
	.cfi_escape 0x0f, 19
	.cfi_escape breg_esp, 0, deref, plus, 68	# &frame->user_esp
	.cfi_escape breg_esp, 0, deref, plus, 60, deref	# frame->cs
	.cfi_escape 0x33, 0x1a				# lit3, and
	.cfi_escape 0x30, 0x29				# lit0, eq
	.cfi_escape 0x28, 1, 0				# bra over the next
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
	.skip	BYTES
	.cfi_endproc
	.endm

	.text
