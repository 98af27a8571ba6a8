/* For tests: the name of Apple's header that metal-cpp uses. */
#pragma once
typedef struct { double width, height; } CGSize;
