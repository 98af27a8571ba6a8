"""`recording-xcrun`: stands in for Apple's tools, checks and keeps their command lines, and compiles no shader.

Command line only: what it makes of a shader is text that says so. It is `xcrun`, `xcodebuild`, `xcode-select`, `metal` or `metallib` by the
name that it is called by. An option that the rules for Metal do not have ends it. Each line is kept as JSON in `command-lines-only.log` of
the directory that DEVELOPER_DIR would name, three levels above a program of its toolchain and two above any other.

Sources: Apple's "Metal shading language specification" and the manual pages of `metal`, `metallib`, `xcrun`, `xcode-select` and `xcodebuild`.
"""

import json
import os
import re
import sys

NAME = "recording-xcrun (command line only)"
STANDARD = re.compile(r"-std=(macos-)?metal[0-9]+\.[0-9]+")
MINIMUM = re.compile(r"-mmacosx-version-min=[0-9]+(\.[0-9]+){0,2}")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def refuse(what):
    print(f"{NAME}: unknown option: {what}", file=sys.stderr)
    sys.exit(64)


def metal(argv):
    """Takes `-std -O2 -mmacosx-version-min -I.. -MD -MF depfile -c source -o output`, in this order and nothing else."""
    if argv == ["--version"]:
        print("Apple metal version 32023.830 (stand-in of the tests: no compiler of Apple's)")
        return
    rest = list(argv)

    def take(fits):
        if not rest or not fits(rest[0]):
            refuse(rest[0] if rest else "the end of the line")
        return rest.pop(0)

    take(STANDARD.fullmatch)
    take(lambda word: word == "-O2")
    take(MINIMUM.fullmatch)
    includes = []
    while rest and rest[0].startswith("-I") and len(rest[0]) > 2:
        includes.append(rest.pop(0)[2:])
    take(lambda word: word == "-MD")
    take(lambda word: word == "-MF")
    depfile = take(lambda word: not word.startswith("-"))
    take(lambda word: word == "-c")
    source = take(lambda word: word.endswith(".metal") and not word.startswith("-"))
    take(lambda word: word == "-o")
    output = take(lambda word: word.endswith(".air") and not word.startswith("-"))
    if rest:
        refuse(rest[0])
    files = read(source, includes, [])
    with open(output, "w", encoding="utf-8") as made:
        made.write(f"{NAME}: no AIR of {source}\n")
        for file in files:
            with open(file, encoding="utf-8") as text:
                made.write(text.read())
    with open(depfile, "w", encoding="utf-8") as rules:
        rules.write(f"{output}: " + " \\\n  ".join(file.replace(" ", "\\ ") for file in files) + "\n")


def read(file, includes, known):
    """A file and all that it includes with quotes, each once."""
    if file in known:
        return known
    known.append(file)
    with open(file, encoding="utf-8") as text:
        for name in INCLUDE.findall(text.read()):
            places = [os.path.join(place, name) for place in [os.path.dirname(file), *includes]]
            found = next((place for place in places if os.path.isfile(place)), None)
            if found is None:
                print(f"{file}: '{name}' file not found", file=sys.stderr)
                sys.exit(1)
            read(found, includes, known)
    return known


def metallib(argv):
    if len(argv) < 3 or argv[0] != "-o" or not argv[1].endswith(".metallib"):
        refuse(" ".join(argv))
    for unit in argv[2:]:
        if unit.startswith("-") or not unit.endswith(".air"):
            refuse(unit)
    with open(argv[1], "wb") as made:
        made.write(b"MTLB " + NAME.encode() + b"\n")
        for unit in argv[2:]:
            with open(unit, "rb") as text:
                made.write(text.read())


def xcrun(argv, developer):
    tools = {"metal", "metallib", "clang++"}
    if len(argv) == 4 and argv[:3] == ["--sdk", "macosx", "--find"] and argv[3] in tools:
        path = os.path.join(developer, "Toolchains/XcodeDefault.xctoolchain/usr/bin", argv[3])
        if not os.path.isfile(path):
            print(f'xcrun: error: unable to find utility "{argv[3]}", not a developer tool or in PATH', file=sys.stderr)
            sys.exit(72)
        print(path)
    elif argv in (["--sdk", "macosx", "--show-sdk-version"], ["--sdk", "macosx", "--show-sdk-path"]):
        sdk = os.path.join(developer, "Platforms/MacOSX.platform/Developer/SDKs/MacOSX.sdk")
        print(sdk if argv[2] == "--show-sdk-path" else answer(developer, "sdk", "26.0"))
    else:
        refuse(" ".join(argv))


def xcodebuild(argv, developer):
    if argv != ["-showComponent", "MetalToolchain"]:
        refuse(" ".join(argv))
    path = answer(developer, "component", "")
    print("Build Version: 17A324")
    print("Status: " + ("installed" if path else "uninstalled"))
    if path:
        print("Toolchain Identifier: com.apple.dt.toolchain.Metal.32023.830.1")
        print(f"Toolchain Search Path: {path}")


def xcode_select(argv, developer):
    if argv != ["-p"]:
        refuse(" ".join(argv))
    print(developer)


def place_of_log(path):
    """Where DEVELOPER_DIR leads; of a toolchain that is elsewhere, the directory that it is in."""
    if ".xctoolchain/" in path:
        toolchain = path.split(".xctoolchain/")[0]
        return toolchain.split("/Toolchains/")[0] if "/Toolchains/" in toolchain else os.path.dirname(toolchain)
    return os.path.dirname(os.path.dirname(os.path.dirname(path)))


def answer(developer, name, otherwise):
    """What a test wants it to say."""
    try:
        with open(os.path.join(developer, f"recording-{name}"), encoding="utf-8") as said:
            return said.read().strip()
    except FileNotFoundError:
        return otherwise


def main():
    path = os.path.abspath(sys.argv[0])
    name, argv = os.path.basename(path), sys.argv[1:]
    developer = place_of_log(path)
    with open(os.path.join(developer, "command-lines-only.log"), "a", encoding="utf-8") as log:
        log.write(json.dumps({"program": name, "argv": argv, "cwd": os.getcwd()}) + "\n")
    if name == "metal":
        metal(argv)
    elif name == "metallib":
        metallib(argv)
    elif name == "xcrun":
        xcrun(argv, developer)
    elif name == "xcodebuild":
        xcodebuild(argv, developer)
    elif name == "xcode-select":
        xcode_select(argv, developer)
    else:
        refuse(f"the program {name}")


main()
