/* In place of kernel/cpu/paging.h: the directory and the TLB are a model (tests/host/space/mmu.c).
 */
#pragma once

#include <stdint.h>

uint32_t paging_directory(void);
void paging_use(uint32_t directory);
void tlb_flush_page(uint32_t address);
