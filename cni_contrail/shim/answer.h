/* The daemon's answer: its requests to pin namespaces, and the result of the call. */
#ifndef ANSWER_H
#define ANSWER_H

#include <stdint.h>

struct answer {
    uint32_t status, size;
    const char *output;
};

/* Does what the daemon asks for, until it sends the result. */
struct answer read_answer(int daemon);

#endif
