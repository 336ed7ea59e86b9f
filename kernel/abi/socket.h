/* Sockets as programs see them: Linux's numbers and structures for i386. */
#pragma once

#include <stdint.h>

#define AF_UNSPEC   0u /* none: ends what connect began */
#define AF_UNIX	    1u
#define SOCK_STREAM 1u
#define SOCK_DGRAM  2u
#define SOCK_RAW    3u
#define SOCK_LAST   10u
#define SOCK_TYPES  15u

/* struct sockaddr_un, and room for a NUL. */
struct linux_socket_name {
	uint16_t family;
	char path[109];
};

#define SOCKET_NAME_MAX 110u

/* Flags of send and recv. */
#define MSG_PEEK	 0x00000002u
#define MSG_TRUNC	 0x00000020u
#define MSG_CTRUNC	 0x00000008u
#define MSG_DONTWAIT	 0x00000040u
#define MSG_WAITALL	 0x00000100u
#define MSG_NOSIGNAL	 0x00004000u
#define MSG_MORE	 0x00008000u
#define MSG_CMSG_CLOEXEC 0x40000000u

/* What shutdown ends. */
#define SHUT_RD	  0u
#define SHUT_WR	  1u
#define SHUT_RDWR 2u

/* getsockopt's level, and options. */
#define SOL_SOCKET    1u
#define SO_REUSEADDR  2u
#define SO_TYPE	      3u
#define SO_ERROR      4u
#define SO_SNDBUF     7u
#define SO_RCVBUF     8u
#define SO_PASSCRED   16u
#define SO_PEERCRED   17u
#define SO_ACCEPTCONN 30u
#define SO_PROTOCOL   38u
#define SO_DOMAIN     39u

/* struct msghdr. */
struct linux_message {
	uint32_t name, name_length, vectors, count, control, control_length, flags;
};

/* struct cmsghdr, and the types of control data: descriptors, and who sends. */
struct linux_control {
	uint32_t length, level, type;
};

#define SCM_RIGHTS	1u
#define SCM_CREDENTIALS 2u
#define SCM_MAX		253u /* descriptors in one message */

struct linux_credentials {
	int32_t pid;
	uint32_t user, group;
};

/* Errors that only sockets give. */
#define ENOTSOCK	88
#define EMSGSIZE	90
#define EPROTOTYPE	91
#define ENOPROTOOPT	92
#define EPROTONOSUPPORT 93
#define ESOCKTNOSUPPORT 94
#define EAFNOSUPPORT	97
#define EADDRINUSE	98
#define ECONNRESET	104
#define EISCONN		106
#define ENOTCONN	107
#define ETOOMANYREFS	109
#define ECONNREFUSED	111
