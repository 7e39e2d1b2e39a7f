/* Output for people and runtimes: results, CNI errors, and complaints on standard error. */
#ifndef MESSAGES_H
#define MESSAGES_H

#include <stdbool.h>
#include <stddef.h>

enum code { BAD_ENVIRONMENT = 4, BAD_INPUT = 5, BAD_CONFIG = 6, TRY_AGAIN = 11, UNAVAILABLE = 50, BAD_DAEMON = 107 };

/* Writes to standard error, as far as that is possible. */
void complain(const char *text);

/* Describes by errno why a wait failed: the deadline passed, the peer closed the connection (0), or an error. */
const char *why(const char *too_late);

/* Writes a response to standard output; returns whether all of it was written. */
bool print(const char *bytes, size_t size);

/* Prints the error "message: cause" and exits. Cause and details may be NULL. */
_Noreturn void fail(enum code code, const char *message, const char *cause, const char *details);

#endif
