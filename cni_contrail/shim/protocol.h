/*
 * Protocol between the shim and contrail-cnid: one connection per call, integers big-endian.
 *
 *   to the daemon    header: "cnid", version u16, 0 u16, netns i32, environment size u32, input size u32;
 *                    environment: KEY=VALUE\0 for each CNI_ variable; input: standard input unchanged.
 *                    netns: 0 (a descriptor comes with the first byte), an errno (opening failed), -1 (no CNI_NETNS)
 *   from the daemon  0x01 when it has read the whole request, within ACKNOWLEDGE_SECONDS of connecting. It has not
 *                    begun the call before that: if the connection is lost, the request is repeated
 *   from the daemon  during ADD, any number of times: PIN u32, name size u32, name; the descriptor of a network
 *                    namespace comes with the first byte (see pin.h)
 *   to the daemon    for each of them: 0, or the errno with which it failed, u32
 *   from the daemon  exit status u32 (0 or 1), output size u32, output, within ANSWER_SECONDS of the acknowledgement
 *   to the daemon    0x01 when all output is written: if we exit without sending it, the daemon rolls an ADD back
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <stdint.h>

#define PROTOCOL_VERSION 2
#define ENVIRONMENT_LIMIT 65536
#define INPUT_LIMIT 1048576
#define OUTPUT_LIMIT 1048576
#define ACKNOWLEDGE_SECONDS 2
#ifndef ANSWER_SECONDS /* tests build with a shorter timeout */
#define ANSWER_SECONDS 120
#endif

#define PIN 2 /* in place of an exit status */

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

struct request_header {
    char magic[4];
    uint16_t version, reserved;
    int32_t netns;
    uint32_t environment_size, input_size;
};

struct answer_header {
    uint32_t status, size;
};

_Static_assert(sizeof(struct request_header) == 20 && sizeof(struct answer_header) == 8,
               "wire structures must not be padded");

#endif
