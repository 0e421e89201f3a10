/* Included before each source that is compiled for Windows. There isnan and isfinite call a library of the compiler,
 * which would have to be built first. */
#include <math.h>

#undef isnan
#undef isfinite
#define isnan(x) __builtin_isnan(x)
#define isfinite(x) __builtin_isfinite(x)
