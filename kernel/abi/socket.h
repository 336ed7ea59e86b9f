/* Sockets as programs see them: Linux's numbers and structures for i386. */
#pragma once

#include <stdint.h>

#define AF_UNIX	    1u
#define SOCK_STREAM 1u

/* Flags of send and recv. */
#define MSG_DONTWAIT	 0x00000040u
#define MSG_NOSIGNAL	 0x00004000u
#define MSG_MORE	 0x00008000u
#define MSG_CMSG_CLOEXEC 0x40000000u

/* What shutdown ends. */
#define SHUT_RD	  0u
#define SHUT_WR	  1u
#define SHUT_RDWR 2u

/* getsockopt's level, and options. */
#define SOL_SOCKET    1u
#define SO_TYPE	      3u
#define SO_ERROR      4u
#define SO_SNDBUF     7u
#define SO_RCVBUF     8u
#define SO_ACCEPTCONN 30u
#define SO_PROTOCOL   38u
#define SO_DOMAIN     39u

/* struct msghdr. */
struct linux_message {
	uint32_t name, name_length, vectors, count, control, control_length, flags;
};

/* Errors that only sockets give. */
#define ENOTSOCK    88
#define EMSGSIZE    90
#define ENOPROTOOPT 92
