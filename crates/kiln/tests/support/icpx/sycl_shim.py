"""`sycl-shim`: stands in for `icpx` with the compiler inside Intel's SYCL runtime, for tests.

Device code is compiled by `libsycl-jit.so`, which is Intel's front end, to SPIR-V; host code by g++. It proves that sources compile and
what they compute on the processor's OpenCL device. It proves nothing of icpx's command line, of code that is made ahead of time, or of a
GPU. Options for those are checked against the list of `options`; of targets that are compiled ahead of time it makes images without code.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile

import options

NAME = "sycl-shim (no icpx: Intel's SYCL runtime compiles the device code, g++ the rest)"
# Functions of Intel's device libraries, which come with icpx alone: conversions of bfloat16.
DEVICE_LIBRARY = r"""
#ifdef __SYCL_DEVICE_ONLY__
extern "C" __DPCPP_SYCL_EXTERNAL float __devicelib_ConvertBF16ToFINTEL(const uint16_t &bits) noexcept {
  return sycl::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
extern "C" __DPCPP_SYCL_EXTERNAL uint16_t __devicelib_ConvertFToBF16INTEL(const float &value) noexcept {
  const uint32_t x = sycl::bit_cast<uint32_t>(value);
  const bool is_nan = (x & 0x7fffffffu) > 0x7f800000u;
  return static_cast<uint16_t>(is_nan ? (x >> 16) | 0x40u : (x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}
#endif
"""


def main():
    root, release = options.kit()
    argv = sys.argv[1:]
    if options.answer(argv, release):
        return
    try:
        command = options.Command(argv)
    except options.Unknown as unknown:
        options.refuse(NAME, unknown)
    if command.compiles and command.is_sycl and command.language != "c":
        compile_sycl(root, command)
    elif command.compiles or not command.is_sycl:
        options.run(["g++", *options.host_arguments(command)])
    else:
        has_spirv = any(is_ours(file) for file in command.files)
        options.link(command, ["-L" + os.path.join(root, "lib"), "-lsycl"], has_spirv)


def is_ours(path):
    """Whether a file is an object with SPIR-V."""
    with open(path, "rb") as file:
        return b"__CLANG_OFFLOAD_BUNDLE__sycl-spir64\0" in file.read()


def compile_sycl(root, command):
    with tempfile.TemporaryDirectory(prefix="sycl-shim-") as scratch:
        header = os.path.join(scratch, "integration.h")
        images = compile_device(root, command, scratch, header)
        host = os.path.join(scratch, "host.o") if images else command.output
        arguments = [host if argument == command.output else argument for argument in options.host_arguments(command)]
        own = ["-include", header, "-isystem", os.path.join(root, "include"), f"-ffile-prefix-map={scratch}=sycl-shim"]
        # Intel's headers are for Clang.
        options.run(["g++", *arguments, *own, "-Wno-attributes", "-Wno-unknown-pragmas", "-Wno-changes-meaning", "-fpermissive", "-w"])
        if command.depfile:
            forget(command.depfile, scratch, host, command.output)
        if images:
            registration = os.path.join(scratch, "registration.o")
            source = os.path.join(scratch, "registration.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write(registration_of(images))
            options.run(["g++", "-x", "c", "-O2", "-fPIC", "-fvisibility=hidden", "-c", source, "-o", registration], cwd=scratch)
            options.run(["g++", "-r", "-nostdlib", host, registration, "-o", command.output])


def compile_device(root, command, scratch, header):
    """Compiles the device code of the one source, and gives the files of its images, in order."""
    (source,) = command.files
    with open(source, encoding="utf-8") as file:
        text = file.read()
    # The compiler is given text alone: quoted names are looked up beside the source first.
    arguments = ["-I" + os.path.dirname(os.path.abspath(source))]
    plain = iter(command.plain)
    for argument in plain:
        if argument == "-isystem":
            arguments.append("-I" + os.path.abspath(next(plain)))
        elif argument.startswith("-I"):
            arguments.append("-I" + os.path.abspath(argument[2:]))
        elif argument.startswith(("-D", "-std=")):
            arguments.append(argument)
        elif argument in options.PAIRS:
            next(plain)
    arguments.append("-I" + os.path.join(root, "include"))
    arguments += ["-fno-sycl-device-lib=all", "-fno-sycl-dead-args-optimization", "-Xclang", "-fsycl-int-header=" + header]
    unit = os.path.join(scratch, "unit.cpp")
    with open(unit, "w", encoding="utf-8") as file:
        file.write(f'#line 1 "{source}"\n{text}\n#include <sycl/sycl.hpp>\n{DEVICE_LIBRARY}')
    no_others = os.path.join(scratch, "no-vendors")
    os.mkdir(no_others)
    lib = os.path.join(root, "lib")
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "LD_LIBRARY_PATH": lib,
        "SYCL_DUMP_IMAGES": "1",
        "SYCL_CACHE_PERSISTENT": "0",
        "OCL_ICD_FILENAMES": os.path.join(lib, "libintelocl.so"),
        "OCL_ICD_VENDORS": no_others,
        "HOME": scratch,
    }
    device = os.path.join(root, "bin/compiler/sycl-device")
    done = subprocess.run([device, unit, *arguments], cwd=scratch, env=environment, stderr=subprocess.PIPE, text=True)
    said = [line for line in done.stderr.splitlines() if "-fno-sycl-device-lib=all' is deprecated" not in line]
    if any(line.strip() for line in said):
        print(f"{NAME}:", *said, sep="\n", file=sys.stderr)
    if done.returncode != 0:
        sys.exit(done.returncode)
    dumped = [name for name in os.listdir(scratch) if name.endswith(".spv")]
    number = lambda name: int((re.search(r"(\d+)\.spv$", name.replace("spir64", "")) or [0, 0])[1])
    return [os.path.join(scratch, name) for name in sorted(dumped, key=number)]


def kernels(image):
    """The names of the kernels in a module of SPIR-V."""
    with open(image, "rb") as file:
        words = struct.iter_unpack("<I", file.read())
    words = [word for (word,) in words]
    found, at = [], 5
    while at < len(words):
        size, code = words[at] >> 16, words[at] & 0xFFFF
        if code == 15:  # OpEntryPoint: the model, the function, then its name
            name = struct.pack(f"<{size - 3}I", *words[at + 3 : at + size])
            found.append(name.split(b"\0", 1)[0].decode())
        at += max(size, 1)
    return found


def registration_of(images):
    """C that tells the SYCL runtime of the images: the structures of libsycl.so.8."""
    text = [
        "#include <stddef.h>",
        "#include <stdint.h>",
        "struct entry { void *address; const char *name; size_t size; int32_t flags, reserved; };",
        "struct image { uint16_t version; uint8_t kind, format; const char *target, *compile_options, *link_options;",
        "  const void *manifest_begin, *manifest_end, *begin, *end; const struct entry *entries_begin, *entries_end;",
        "  const void *properties_begin, *properties_end; };",
        "struct library { uint16_t version, count; const struct image *images; const void *host_begin, *host_end; };",
        "void __sycl_register_lib(const struct library *);",
        "void __sycl_unregister_lib(const struct library *);",
    ]
    for index, image in enumerate(images):
        names = kernels(image)
        text += [
            f'__asm__(".pushsection __CLANG_OFFLOAD_BUNDLE__sycl-spir64,\\"a\\",@progbits\\n"',
            f'        ".balign 8\\n.Limage{index}:\\n.incbin \\"{os.path.basename(image)}\\"\\n.Lend{index}:\\n.popsection\\n"',
            f'        ".pushsection .data.rel.ro.sycl,\\"aw\\",@progbits\\n.balign 8\\n"',
            f'        "image_bounds{index}: .quad .Limage{index}, .Lend{index}\\n.popsection\\n");',
            f'extern const void *const image_bounds{index}[2] __attribute__((visibility("hidden")));',
            f"static const struct entry entries{index}[] = {{",
            *[f'  {{0, "{name}", 0, 0, 0}},' for name in names],
            "};",
        ]
    text.append(f"static struct image images[{len(images)}];")
    text.append(f"static const struct library library = {{1, {len(images)}, images, 0, 0}};")
    text.append("__attribute__((constructor)) static void add(void) {")
    for index, image in enumerate(images):
        count = len(kernels(image))
        text.append(
            f'  images[{index}] = (struct image){{1, 4, 2, "spir64", "", "", 0, 0, image_bounds{index}[0], image_bounds{index}[1], '
            f"entries{index}, entries{index} + {count}, 0, 0}};"
        )
    text.append("  __sycl_register_lib(&library);\n}")
    text.append("__attribute__((destructor)) static void take(void) { __sycl_unregister_lib(&library); }")
    return "\n".join(text) + "\n"


def forget(depfile, scratch, host, output):
    """Takes what is in `scratch` out of a depfile: it is gone when the depfile is read."""
    with open(depfile, encoding="utf-8") as file:
        text = file.read()
    text = text.replace(host, output)
    text = re.sub(r"\s(\\\n\s*)?" + re.escape(scratch) + r"/\S+", " ", text)
    with open(depfile, "w", encoding="utf-8") as file:
        file.write(text)


main()
