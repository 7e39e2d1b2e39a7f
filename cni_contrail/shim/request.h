/* The request: CNI_ variables, standard input, and CNI_NETNS, opened where the runtime's paths are valid. */
#ifndef REQUEST_H
#define REQUEST_H

#include <stddef.h>

/* Returns the value of an environment variable, empty if it is not set. */
const char *variable(const char *name);

/* Returns the request and its size; `netns` is the descriptor of CNI_NETNS if it was opened, otherwise unchanged. */
char *read_request(size_t *size, int *netns);

#endif
