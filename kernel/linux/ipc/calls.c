/*
 * System calls of System V's semaphores, messages and shared memory. On i386 they are one call,
 * whose first argument says which of them is meant; the others are where each has its own:
 *
 *	EBX	number	ECX	id or key	EDX, ESI, EBP	words	EDI	user address
 *
 * The upper half of the number is a version; only 0 is known here. Linux 5.1 added a call for each
 * of them, except semop; they are missing here, apart from semtimedop_time64. ipc(2).
 */
#include "kernel/linux/ipc/keys.h"

SYSCALL_DEFINE(117, sys_ipc, "ddxxxx")
{
	switch (frame->ebx) {
	case IPC_SEMOP:
		return semaphore_operate(frame->ecx, frame->edi, frame->edx, 0, TIMESPEC);
	case IPC_SEMTIMEDOP:
		return semaphore_operate(frame->ecx, frame->edi, frame->edx, frame->ebp, TIMESPEC);
	case IPC_SEMGET:
		return ipc_get(&ipc_sets, frame->ecx, frame->edx, frame->esi);
	case IPC_SEMCTL:
		return semaphore_control(frame);
	case IPC_MSGSND:
		return message_send(frame->ecx, frame->edi, frame->edx, frame->esi);
	case IPC_MSGRCV:
		return message_receive(frame);
	case IPC_MSGGET:
		return ipc_get(&ipc_queues, frame->ecx, 1, frame->edx);
	case IPC_MSGCTL:
		return ipc_control(&ipc_queues, frame->ecx, frame->edx & ~IPC_64, frame->edi);
	case IPC_SHMAT:
		return segment_attach(frame->ecx, frame->edi, frame->edx, frame->esi);
	case IPC_SHMDT:
		return segment_detach(frame->edi);
	case IPC_SHMGET:
		return ipc_get(&ipc_segments, frame->ecx, frame->edx, frame->esi);
	case IPC_SHMCTL:
		return segment_control(frame->ecx, frame->edx & ~IPC_64, frame->edi);
	}
	return -ENOSYS;
}

SYSCALL(420, sys_semtimedop_time64, "dpdp",
	semaphore_operate(frame->ebx, frame->ecx, frame->edx, frame->esi, TIMESPEC64))
