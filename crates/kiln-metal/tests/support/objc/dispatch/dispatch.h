/* For tests: the few names of Apple's header that the generated header uses. */
#pragma once
#include <stddef.h>
typedef struct dispatch_data_s *dispatch_data_t;
typedef struct dispatch_queue_s *dispatch_queue_t;
extern "C" dispatch_data_t dispatch_data_create(const void *buffer, size_t size, dispatch_queue_t queue, void (^destructor)(void));
extern "C" void dispatch_release(dispatch_data_t object);
