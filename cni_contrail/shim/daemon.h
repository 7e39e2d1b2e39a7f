/* Connection to the daemon: the request is sent until a daemon acknowledges it. */
#ifndef DAEMON_H
#define DAEMON_H

#include <stddef.h>

#include "messages.h"

/* Prints the error of a daemon that is away or violates the protocol, and exits. */
_Noreturn void fail_daemon(enum code code, const char *cause);

/* Returns a connection on which the daemon has acknowledged the request. */
int request_daemon(char *request, size_t size, int netns);

#endif
