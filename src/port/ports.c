/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "port/port.h"

/* A new port is one file and one line here. */
static const struct port_ops *const ports[] = {
	&tap_port,
	&xdp_port,
	&loopback_port,
	&null_port,
};

const struct port_ops *port_find(const char *name)
{
	for (size_t i = 0; i < array_size(ports); i++)
		if (strcmp(ports[i]->name, name) == 0)
			return ports[i];
	return NULL;
}
