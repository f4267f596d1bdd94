/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of the configuration file, made fit for libConfuse 3.3, which counts lines wrongly
 * behind a comment, takes the end of the file for the end of an open section or comment, skips
 * characters that it does not know, and starts the next file inside a string that was left open.
 * So comments are blanked here, and all of that is refused with the right line. Control thread
 * only; reads the file to its end.
 */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include <stddef.h>

/*
 * Read `file` and blank its comments; lines stay where they are.
 * @text: gets a string that the caller frees
 * Return: 0; or a negative errno after one log line.
 */
int config_text_read(char **text, const char *file);

#endif
