"""The options of `icpx` that its stand-ins of the tests know. A stand-in refuses every other one.

Source: Intel's "oneAPI DPC++/C++ Compiler Developer Guide and Reference", and Clang's manual for what icpx has of it.
"""

import os
import re
import subprocess
import sys

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
PAIRS = {"-x", "-o", "-MF", "-isystem", "-Xlinker", "-include"}
# Options of one target's compiler, each before what that is told.
TARGET_PAIRS = ("-Xsycl-target-backend=", "-Xspirv-translator=")
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


def refuse(name, unknown):
    print(f"{name}: unknown option: {unknown}", file=sys.stderr)
    sys.exit(64)


def kit():
    """The directory of the stand-in's toolkit, and the release that it is called by."""
    root = os.path.dirname(os.path.dirname(os.path.realpath(sys.argv[0])))
    return root, os.path.basename(root)
