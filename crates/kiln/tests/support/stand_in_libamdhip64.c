/* A stand-in for AMD's runtime, for machines without it. Its two devices are gfx942 and gfx1100; the properties have the architecture
   where no release has it. */
#include <string.h>
int hipInit(unsigned flags) { return flags; }
int hipGetDeviceCount(int *out) { *out = 2; return 0; }
const char *hipGetErrorName(int code) { return code ? "hipErrorUnknown" : "hipSuccess"; }
int hipGetDeviceProperties(void *out, int device) {
  memset(out, 0, 2048);
  strcpy(out, device ? "Stand-in gfx one" : "Stand-in");
  strcpy((char *)out + 1777, device ? "gfx1100" : "gfx942:sramecc+:xnack-");
  return device < 0 || device > 1;
}
