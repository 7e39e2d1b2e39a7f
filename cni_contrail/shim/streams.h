/* Waiting, reading and writing with deadlines, in milliseconds of the monotonic clock. */
#ifndef STREAMS_H
#define STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int64_t deadline_in(int seconds);

/* Returns the milliseconds until the deadline; 0 with errno ETIME after it. */
int time_left(int64_t deadline);

/* Waits until a descriptor is ready or broken. Returns false with errno if the deadline passes. */
bool wait_for(int descriptor, short event, int64_t deadline);

/* Waits at most so many milliseconds before the next attempt; returns false with errno unchanged after the deadline. */
bool pause_before(int milliseconds, int64_t deadline);

/* Whether a system call is to be retried. */
bool is_passing(int error);

/* Fills the buffer and returns the number of bytes read: if fewer, errno is set, or 0 at the end of the input. */
size_t read_full(int descriptor, void *buffer, size_t size, int64_t deadline);

/* Writes all bytes; returns false with errno if it cannot. */
bool write_full(int descriptor, const char *bytes, size_t size, int64_t deadline);

/* Moves a descriptor above the standard streams: if the runtime closed one, open() and socket() reuse its number. */
int above_standard_streams(int descriptor);

#endif
