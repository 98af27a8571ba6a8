/* For tests: the name of Apple's header that metal-cpp uses. */
#pragma once
typedef struct __IOSurface *IOSurfaceRef;
