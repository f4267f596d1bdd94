/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every system test starts with: one daemon, one guest with a network card, and the runner.
 */
#ifndef SUPPORT_SYSTEM_H
#define SUPPORT_SYSTEM_H

#include <check.h>

#include "support/daemon.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/nic.h"
#include "support/wait.h"

extern struct daemon daemon_under_test;
extern struct nic nic;

#define dut (&daemon_under_test)

/* Start the daemon with these arguments. */
#define system_start(...) daemon_start(dut, &(struct daemon_options){.args = {__VA_ARGS__}})

/* Connect the guest's card to it. */
void system_connect(const struct nic_options *options);

/* Two pings' worth of proof that the daemon serves a new connection: connect, send, receive. For
 * port loopback. The guest is a fresh one. */
void system_check_service(void);

/* Run the daemon, which must end within a second with this exit code and one line on stderr that
 * contains `names`; it has created no socket. */
void system_expect_failure(const struct daemon_options *options, int code, const char *names);

/* The daemon runs, and ends well on SIGTERM. */
void system_check_end(void);

/*
 * Run a suite of one test case, each test with the fixture above.
 * @add: adds the tests
 * Return: the exit code for main().
 */
int system_main(const char *name, void (*add)(TCase *tc));

/* The same with one case for each layout of the rings. @add_split: adds what only split rings have, or
 * what would be the same on both; NULL: nothing */
int system_main_rings(const char *name, void (*add)(TCase *tc), void (*add_split)(TCase *tc));

#endif
