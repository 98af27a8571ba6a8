/* A stand-in for NVIDIA's driver, for machines without one: it has the devices that DEVICES lists ("90, 86"), or fails with INIT. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
static const int devices[] = {DEVICES};
static const int count = COUNT;
int cuInit(unsigned flags) { return flags ? 1 : INIT; }
int cuGetErrorName(int code, const char **name) { *name = code == 100 ? "CUDA_ERROR_NO_DEVICE" : code == 999 ? "CUDA_ERROR_UNKNOWN" : 0; return !*name; }
int cuGetErrorString(int code, const char **text) { *text = code == 999 ? "unknown error" : 0; return !*text; }
int cuDeviceGetCount(int *out) { *out = count; return 0; }
int cuDeviceGet(int *out, int ordinal) { *out = ordinal + 7; return ordinal < 0 || ordinal >= count; }
int cuDeviceGetName(char *out, int room, int device) { strncpy(out, "Stand-in", room); return device < 7; }
int cuDeviceGetAttribute(int *out, int attribute, int device) {
  if (device < 7 || (attribute != 75 && attribute != 76)) return 1;
  *out = attribute == 75 ? devices[device - 7] / 10 : devices[device - 7] % 10;
  return 0;
}
int cuDeviceTotalMem_v2(size_t *out, int device) { *out = (size_t)1 << 30; return device < 7; }
/* Its memory is that of the process, out of reach of whoever does not ask the driver. */
int cuDevicePrimaryCtxRetain(void **out, int device) { *out = out; return device < 7; }
int cuCtxSetCurrent(void *context) { return !context; }
int cuCtxSynchronize(void) { return 0; }
int cuMemAlloc_v2(unsigned long long *out, size_t bytes) { *out = (unsigned long long)(size_t)malloc(bytes); return !*out; }
int cuMemFree_v2(unsigned long long address) { free((void *)(size_t)address); return 0; }
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes) { memcpy((void *)(size_t)to, from, bytes); return 0; }
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) { memcpy(to, (void *)(size_t)from, bytes); return 0; }
int cuMemcpyDtoD_v2(unsigned long long to, unsigned long long from, size_t bytes) { memcpy((void *)(size_t)to, (void *)(size_t)from, bytes); return 0; }
