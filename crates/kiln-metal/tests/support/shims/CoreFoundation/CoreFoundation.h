/* For tests: the few names of Apple's header that metal-cpp uses. */
#pragma once
#include <stdint.h>
typedef const void *CFTypeRef;
typedef const struct __CFString *CFStringRef;
typedef double CFTimeInterval;
