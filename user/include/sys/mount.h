/* Commands to block devices. */
#pragma once

#include "kernel/abi/block.h"
