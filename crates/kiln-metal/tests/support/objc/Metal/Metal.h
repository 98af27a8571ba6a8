/* For tests: the few names of Apple's header that the generated header uses. */
#pragma once
#include <dispatch/dispatch.h>
@protocol MTLLibrary
@end
@protocol MTLDevice
- (id<MTLLibrary>)newLibraryWithData:(dispatch_data_t)data error:(NSError **)error;
@end
