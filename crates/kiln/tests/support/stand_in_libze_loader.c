/* A stand-in for the loader of Level Zero, for machines without it. It has one driver with a GPU and a device of another kind. */
#include <stdint.h>
#include <string.h>
int zeInit(uint32_t flags) { return flags; }
int zeDriverGet(uint32_t *count, void **out) { *count = 1; if (out) out[0] = out; return 0; }
int zeDeviceGet(void *driver, uint32_t *count, void **out) { *count = 2; if (out) out[0] = (void *)8, out[1] = (void *)16; return !driver; }
int zeDeviceGetProperties(void *device, void *out) {
  uint32_t *words = out;
  if (words[0] != 3) return 1;
  words[4] = device == (void *)8 ? 1 : 2; /* ze_device_properties_t: type */
  words[6] = 0x0bd5;                      /* deviceId */
  strcpy((char *)out + 112, "Stand-in GPU"); /* name */
  return 0;
}
