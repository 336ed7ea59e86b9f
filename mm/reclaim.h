/* Reclaim: giving pages back when none is free. */
#pragma once

/* From now on page_alloc asks for pages back before it says that there is none. */
void reclaim_initialize(void);
