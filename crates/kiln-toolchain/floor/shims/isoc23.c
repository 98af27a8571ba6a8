/* glibc 2.38: what newer headers make of strtol and its like. They differ from the functions below in binary literals (0b101),
   which these read as the older ones do. */
typedef int wide;
typedef void *locale;
typedef __builtin_va_list arguments;

#define CONVERT(name, result, character)                           \
  extern result name(const character *, character **, int);        \
  result __isoc23_##name(const character *text, character **end, int base) { return name(text, end, base); }
CONVERT(strtol, long, char)
CONVERT(strtoul, unsigned long, char)
CONVERT(strtoll, long long, char)
CONVERT(strtoull, unsigned long long, char)
CONVERT(strtoimax, long, char)
CONVERT(strtoumax, unsigned long, char)
CONVERT(wcstol, long, wide)
CONVERT(wcstoul, unsigned long, wide)
CONVERT(wcstoll, long long, wide)
CONVERT(wcstoull, unsigned long long, wide)
CONVERT(wcstoimax, long, wide)
CONVERT(wcstoumax, unsigned long, wide)

#define CONVERT_IN(name, result, character)                        \
  extern result name(const character *, character **, int, locale); \
  result __isoc23_##name(const character *text, character **end, int base, locale in) { return name(text, end, base, in); }
CONVERT_IN(strtol_l, long, char)
CONVERT_IN(strtoul_l, unsigned long, char)
CONVERT_IN(strtoll_l, long long, char)
CONVERT_IN(strtoull_l, unsigned long long, char)
CONVERT_IN(wcstol_l, long, wide)
CONVERT_IN(wcstoul_l, unsigned long, wide)
CONVERT_IN(wcstoll_l, long long, wide)
CONVERT_IN(wcstoull_l, unsigned long long, wide)

/* Reading from a string or stream, with a list of arguments and with the arguments themselves. */
#define SCAN(list, plain, source, character)                                                        \
  extern int __isoc99_##list(source, const character *, arguments);                                 \
  int __isoc23_##list(source from, const character *format, arguments to) { return __isoc99_##list(from, format, to); } \
  int __isoc23_##plain(source from, const character *format, ...) {                                 \
    arguments to;                                                                                   \
    int read;                                                                                       \
    __builtin_va_start(to, format);                                                                 \
    read = __isoc99_##list(from, format, to);                                                       \
    __builtin_va_end(to);                                                                           \
    return read;                                                                                    \
  }
SCAN(vsscanf, sscanf, const char *, char)
SCAN(vfscanf, fscanf, void *, char)
SCAN(vswscanf, swscanf, const wide *, wide)
SCAN(vfwscanf, fwscanf, void *, wide)

/* The same from standard input. */
#define SCAN_INPUT(list, plain, character)                                                          \
  extern int __isoc99_##list(const character *, arguments);                                         \
  int __isoc23_##list(const character *format, arguments to) { return __isoc99_##list(format, to); } \
  int __isoc23_##plain(const character *format, ...) {                                              \
    arguments to;                                                                                   \
    int read;                                                                                       \
    __builtin_va_start(to, format);                                                                 \
    read = __isoc99_##list(format, to);                                                             \
    __builtin_va_end(to);                                                                           \
    return read;                                                                                    \
  }
SCAN_INPUT(vscanf, scanf, char)
SCAN_INPUT(vwscanf, wscanf, wide)
