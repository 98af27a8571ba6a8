/* For tests: the few names of Apple's header that metal-cpp uses. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef struct objc_class *Class;
typedef struct objc_object {
    Class isa;
} *id;
typedef struct objc_selector *SEL;
typedef struct objc_method *Method;
typedef struct objc_protocol Protocol;
typedef bool BOOL;
typedef void (*IMP)(void);
#ifdef __cplusplus
extern "C" {
#endif
SEL sel_registerName(const char *name);
Class objc_lookUpClass(const char *name);
Class objc_getClass(const char *name);
Protocol *objc_getProtocol(const char *name);
Method class_getInstanceMethod(Class of, SEL name);
bool class_addMethod(Class to, SEL name, IMP function, const char *types);
#ifdef __cplusplus
}
#endif
