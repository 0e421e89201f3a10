/* Read before each source that is compiled for Windows: there these two are calls into a library of the compiler's, which
 * would have to be built first. */
#include <math.h>

#undef isnan
#undef isfinite
#define isnan(x) __builtin_isnan(x)
#define isfinite(x) __builtin_isfinite(x)
