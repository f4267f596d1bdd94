/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/layout.h"

bool layout_is_packed;

void layout_use_split(void)
{
	layout_is_packed = false;
}

void layout_use_packed(void)
{
	layout_is_packed = true;
}
