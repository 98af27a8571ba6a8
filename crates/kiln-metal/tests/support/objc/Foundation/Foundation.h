/* For tests: the few names of Apple's header that the generated header uses. */
#pragma once
@interface NSError
@end
#define nil nullptr
