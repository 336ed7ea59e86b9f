/* Making a space of areas, for mm's own files. */
#pragma once

/* A space with nothing but the page that all have; NULL without memory. */
struct space *space_allocate(void);
