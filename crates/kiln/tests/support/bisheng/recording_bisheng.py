"""`recording-bisheng`: checks and keeps command lines of `bisheng -x asc`, and compiles no device code.

Command line only, no device code was made: the object that it writes has the launchers that the source defines, `aclrtlaunch_<kernel>`,
and each of them says that it failed. It wants what a launch wants of CANN's static library. An option that is not in the lists below, or
a line that is not of the form that the rules for NPUs have, ends it. Each line is kept as JSON in `command-lines-only.log` of its toolkit.

Source of the options: the guide to Ascend C, "compiling with the command line", and Clang's manual for what bisheng has of it.
"""

import json
import os
import re
import subprocess
import sys

NAME = "recording-bisheng (command line only, no device code was made)"
PLAIN = {"-fPIC", "-c", "-MD", "-g", "-w"}
LEVELS = {"-O0", "-O2", "-O3"}
BEGINNINGS = ("-D", "-I", "-W", "-ffile-prefix-map=")
# Options whose value is the next argument.
PAIRS = {"-o", "-MF", "-isystem", "-include"}
ARCHS = {"dav-1001", "dav-2002", "dav-2201", "dav-3002", "dav-3510"}
# What every line has.
WANTED = {"-fPIC", "-c", "-MD"}


def end(reason):
    print(f"{NAME}: {reason}", file=sys.stderr)
    sys.exit(64)


class Command:
    """A command line, read."""

    def __init__(self, argv):
        self.seen, self.preprocess, self.sources = set(), [], []
        self.arch = self.language = self.standard = self.output = self.depfile = None
        rest = iter(argv)
        for argument in rest:
            self.read(argument, rest)
        self.check()

    def read(self, argument, rest):
        if argument == "-x":
            self.language = next(rest, None)
        elif argument in PAIRS:
            value = next(rest, None)
            if argument == "-o":
                self.output = value
            elif argument == "-MF":
                self.depfile = value
            else:
                self.preprocess += [argument, value]
        elif argument.startswith("--npu-arch="):
            if self.arch is not None:
                end("two --npu-arch: one architecture is compiled for at a time")
            self.arch = argument.split("=", 1)[1]
        elif argument.startswith("-std="):
            self.standard = argument
        elif argument in PLAIN or argument in LEVELS:
            self.seen.add(argument)
        elif argument.startswith(BEGINNINGS):
            if argument.startswith(("-D", "-I")):
                self.preprocess.append(argument)
        elif argument.startswith("-"):
            end(f"unknown option: {argument}")
        else:
            self.sources.append(argument)

    def check(self):
        if self.language != "asc":
            end("no `-x asc`")
        if self.arch not in ARCHS:
            end(f"--npu-arch={self.arch}: unknown architecture")
        if self.standard is None or not re.fullmatch(r"-std=(c|gnu)\+\+(17|20)", self.standard):
            end(f"{self.standard}: C++17 or newer is wanted")
        if missing := WANTED - self.seen:
            end(f"without {' '.join(sorted(missing))}")
        if self.output is None or self.depfile is None or len(self.sources) != 1 or not self.sources[0].endswith(".asc"):
            end(f"one source, one object and one depfile are wanted: {self.sources}")


def environment(root):
    """What the real one needs to find its plug-in and the libraries of that."""
    home, libraries = os.environ.get("ASCEND_HOME_PATH", ""), os.environ.get("LD_LIBRARY_PATH", "")
    if home != root or libraries != os.path.join(root, "lib64"):
        end(f"ASCEND_HOME_PATH is `{home}` and LD_LIBRARY_PATH is `{libraries}`")
    return {"ASCEND_HOME_PATH": home, "LD_LIBRARY_PATH": libraries}


def launchers(source):
    """The launchers that a source defines, each a C function."""
    with open(source, encoding="utf-8") as file:
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    if "__global__" not in text:
        end(f"{source} has no kernel")
    return re.findall(r'extern\s+"C"\s+[\w\s\*]*?\b(aclrtlaunch_\w+)\s*\([^;{]*\)\s*\{', text)


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0])))
    argv = sys.argv[1:]
    command = Command(argv)
    line = {"argv": argv, "environment": environment(root), "cwd": os.getcwd()}
    with open(os.path.join(root, "command-lines-only.log"), "a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")
    # What it reads, by the preprocessor of another compiler; its own headers it finds by itself.
    own = ["-isystem", os.path.join(root, "asc/include")]
    preprocess = ["g++", "-M", "-MF", command.depfile, "-MT", command.output, "-x", "c++", command.standard, *command.preprocess, *own]
    if subprocess.run([*preprocess, command.sources[0]]).returncode != 0:
        sys.exit(1)
    functions = "".join(f"unsigned {name}(void) {{ return recording_bisheng_launch(); }}\n" for name in launchers(command.sources[0]))
    text = f"unsigned recording_bisheng_launch(void);\n{functions}"
    compiled = subprocess.run(["gcc", "-x", "c", "-fPIC", "-c", "-o", command.output, "-"], input=text.encode())
    print(f"{NAME}: {command.sources[0]} for {command.arch}", file=sys.stderr)
    sys.exit(compiled.returncode)


main()
