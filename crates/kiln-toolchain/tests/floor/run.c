/* Loads a library and calls its `check` with a directory. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **words) {
  void *library = count == 3 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*check)(const char *);
  if (!library) {
    fprintf(stderr, "%s\n", count == 3 ? dlerror() : "two arguments are wanted");
    return 100;
  }
  *(void **)&check = dlsym(library, "check");
  return check ? check(words[2]) : 101;
}
