/* SPDX-License-Identifier: BSD-2-Clause
 * Who holds a UDP port: for the one message that a person gets when it is taken. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* "process 812 (fileserver)", or what of it the system shows to us; always text, returns out. */
const char *udp_port_holder(uint16_t port, char *out, size_t size);
