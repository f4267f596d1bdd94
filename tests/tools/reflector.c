/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest without a VM that sends back what it receives, with the addresses exchanged: the frontend
 * library as a program of its own, for tests in which the daemon runs somewhere else.
 * usage: reflector SOCKET
 * It prints "ready", and ends with the connection.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/nic.h"
#include "support/wait.h"

#define RX_BUFFERS 128
#define BUFFER_LEN 2048

static struct nic nic;
static struct nic_frame frame;

static void send_back(void)
{
	char address[6];

	memcpy(address, frame.data, sizeof(address));
	memcpy(frame.data, frame.data + sizeof(address), sizeof(address));
	memcpy(frame.data + sizeof(address), address, sizeof(address));
	nic_send(&nic, 0, frame.data, frame.len);
}

/* A backend says nothing of its own accord. */
static bool is_closed(void)
{
	struct pollfd pfd = {.fd = nic.fe.sock, .events = POLLIN};

	return poll(&pfd, 1, 0) != 0;
}

int main(int argc, char *argv[])
{
	static const struct nic_options options = {0};

	expect_as_program("reflector");
	if (argc != 2) {
		fprintf(stderr, "usage: reflector SOCKET\n");
		return EXIT_FAILURE;
	}
	nic_open(&nic, argv[1], &options);
	nic_post(&nic, 0, RX_BUFFERS, BUFFER_LEN);
	puts("ready");
	fflush(stdout);
	while (!is_closed()) {
		if (nic_poll(&nic, 0, &frame))
			send_back();
		else
			wait_pause_us(100);
	}
	return EXIT_SUCCESS;
}
