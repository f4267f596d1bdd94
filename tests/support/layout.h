/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of the rings that the running test makes. Tests do not choose it: a suite runs its cases
 * once for each (suite.h, system.h).
 */
#ifndef SUPPORT_LAYOUT_H
#define SUPPORT_LAYOUT_H

#include <stdbool.h>

enum layout { LAYOUT_SPLIT = 1, LAYOUT_PACKED = 2, LAYOUT_BOTH = 3 };

extern bool layout_is_packed;

/* Set it: fixtures of check's. */
void layout_use_split(void);
void layout_use_packed(void);

#endif
