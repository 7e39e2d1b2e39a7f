/* The daemon's answer: the result of the call. */
#ifndef ANSWER_H
#define ANSWER_H

#include <stdint.h>

struct answer {
    uint32_t status, size;
    const char *output;
};

/* Waits for the answer. */
struct answer read_answer(int daemon);

#endif
