"""The options of `icpx` that its stand-ins of the tests know. A stand-in refuses every other one.

Source: Intel's "oneAPI DPC++/C++ Compiler Developer Guide and Reference", and Clang's manual for what icpx has of it.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile

# Of SYCL: a C++ compiler without it is not given them.
SYCL = {
    "-fsycl",
    "-foffload-fp32-prec-div",
    "-foffload-fp32-prec-sqrt",
    "-fno-sycl-instrument-device-code",
    "--offload-compress",
}
# Of Clang and of Intel, about arithmetic. g++ compiles as they say, or does not know them.
ARITHMETIC = {"-fhonor-nans", "-fhonor-infinities", "-fno-approx-func"}
PLAIN = {"-fPIC", "-fno-associative-math", "-shared", "-c", "-E", "-MD", "-fvisibility=hidden", "-###", "--version", "-dumpmachine", "-dumpversion"}
BEGINNINGS = ("-D", "-I", "-L", "-O", "-W", "-l", "-std=", "-ffile-prefix-map=", "-print-prog-name=", "-print-file-name=", "-march=")
SYCL_BEGINNINGS = ("-fsycl-targets=",)
# Options whose value is the next argument.
PAIRS = {"-x", "-o", "-MF", "-MT", "-isystem", "-Xlinker", "-include"}
# Options of one target's compiler, each before what that is told.
TARGET_PAIRS = ("-Xsycl-target-backend=", "-Xspirv-translator=")
# The same for the compiler of whatever target there is.
PLAIN_TARGET_PAIRS = {"-Xs", "-Xspirv-translator"}
TARGETS = re.compile(r"spir64|spir64_gen|intel_gpu_[a-z0-9_]+")


class Unknown(Exception):
    """An option that icpx does not have, or that nothing is known of here."""


class Command:
    """A command line, read: what a plain C++ compiler is given of it, and the rest."""

    def __init__(self, argv):
        self.plain, self.sycl, self.files = [], [], []
        self.output = self.depfile = self.language = None
        arguments = iter(argv)
        for argument in arguments:
            self.read(argument, arguments)
        self.compiles = "-c" in self.plain
        self.is_sycl = "-fsycl" in self.sycl
        self.links_device_code = self.is_sycl and "-shared" in self.plain

    def read(self, argument, rest):
        if argument in PAIRS:
            value = next(rest)
            self.plain += [argument, value]
            if argument == "-o":
                self.output = value
            elif argument == "-MF":
                self.depfile = value
            elif argument == "-x":
                self.language = value
        elif argument.startswith(TARGET_PAIRS):
            self.sycl += [argument, next(rest)]
            self.targets(argument.split("=", 1)[1])
        elif argument in PLAIN_TARGET_PAIRS:
            self.sycl += [argument, next(rest)]
        elif argument in SYCL or argument in ARITHMETIC:
            self.sycl.append(argument)
        elif argument.startswith(SYCL_BEGINNINGS):
            self.sycl.append(argument)
            self.targets(argument.split("=", 1)[1])
        elif argument.startswith("-spirv-ext="):
            raise Unknown(f"{argument} (without a -Xspirv-translator before it)")
        elif argument in PLAIN or argument.startswith(BEGINNINGS):
            self.plain.append(argument)
        elif argument.startswith("-"):
            raise Unknown(argument)
        else:
            self.files.append(argument)
            self.plain.append(argument)

    @staticmethod
    def targets(names):
        for name in names.split(","):
            if not TARGETS.fullmatch(name):
                raise Unknown(f"the target {name}")


def answer(argv, release):
    """Answers a question about the compiler itself; false where `argv` asks none."""
    if argv == ["--version"]:
        print(f"Intel(R) oneAPI DPC++/C++ Compiler {release}.2 (stand-in of the tests: no compiler of Intel's)")
    elif argv == ["-dumpversion"]:
        print("21.0.0")
    elif "-E" in argv:
        # What tells families of compilers apart: icpx is a Clang.
        run(["g++", "-D__clang__=1", *argv])
    elif len(argv) == 1 and argv[0].startswith(("-dumpmachine", "-print-")):
        run(["g++", *argv])
    else:
        return False
    return True


def run(argv, **options):
    """Runs a program and ends with it where it fails."""
    done = subprocess.run(argv, **options)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done


def host_arguments(command):
    """What g++ is given: `-Xlinker` and all of the plain options, in order."""
    return command.plain


def linked_targets(command):
    """The targets of a link, each with the devices that its option lists."""
    options = command.sycl
    (names,) = [option.split("=", 1)[1] for option in options if option.startswith("-fsycl-targets=")][-1:] or ["spir64"]
    told = {option.split("=", 1)[1]: value for option, value in zip(options, options[1:]) if option.startswith("-Xsycl-target-backend=")}
    devices = lambda value: (re.search(r"-device (\S+)", value) or [value, ""])[1]
    return [(name, [device for device in devices(told.get(name, "")).split(",") if device]) for name in names.split(",")]


def stand_ins(command, scratch, has_spirv):
    """An object with an image for each target of a link that no compiler is at hand for: headers without any code, and a text that says so.

    The images are laid out as icpx lays out its own. The runtime is not told of them. A test that wants a compiler that forgets a target has a
    file `without-TARGET` in the toolkit.
    """
    note = b"stand-in of the tests: no code was made for this target\0"
    # An ELF file for an Intel GPU (205) with nothing but its header, and the note behind it.
    gpu = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 205, 1, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0)
    member = lambda device: b"%-16s%-12d%-6d%-6d%-8d%-10d`\n" % (b"64." + device.encode() + b"/", 0, 0, 0, 0, 64 + len(note)) + gpu + note
    text = [".section .sycl_stand_ins.note,\"\",@progbits", f'.string "{note[:-1].decode()}"']
    for name, devices in linked_targets(command):
        if name == "spir64":
            # A module without kernels: a header alone.
            image = b"" if has_spirv else struct.pack("<5I", 0x07230203, 0x00010400, 0, 1, 0)
        else:
            image = b"!<arch>\n" + b"".join(map(member, devices)) if len(devices) > 1 else gpu
        section = "spir64" if name == "spir64" else "spir64_gen"
        if image and not os.path.exists(os.path.join(kit()[0], "without-" + section)):
            text += [f'.section __CLANG_OFFLOAD_BUNDLE__sycl-{section},"aR",@progbits', ".balign 8"]
            text.append(".byte " + ",".join(map(str, image)))
    source, made = os.path.join(scratch, "images.s"), os.path.join(scratch, "images.o")
    with open(source, "w", encoding="utf-8") as file:
        file.write("\n".join(text) + '\n.section .note.GNU-stack,"",@progbits\n')
    run(["g++", "-x", "assembler", "-c", source, "-o", made])
    return made


def link(command, more=(), has_spirv=False):
    """Links by g++, with an image for each target."""
    with tempfile.TemporaryDirectory(prefix="icpx-stand-in-") as scratch:
        run(["g++", *host_arguments(command), stand_ins(command, scratch, has_spirv), *more])


def refuse(name, unknown):
    print(f"{name}: unknown option: {unknown}", file=sys.stderr)
    sys.exit(64)


def kit():
    """The directory of the stand-in's toolkit, and the release that it is called by."""
    root = os.path.dirname(os.path.dirname(os.path.realpath(sys.argv[0])))
    return root, os.path.basename(root)
