"""`recording-icpx`: checks and keeps command lines of `icpx`, and compiles no device code.

Only the command line was checked: what it makes is g++'s, of sources without SYCL. An option that icpx does not have, or that is not in
the list of `options`, ends it. Each line is kept as JSON in `command-lines-only.log` of its toolkit.
"""

import json
import os
import sys

import options

NAME = "recording-icpx (only the command line was checked)"
# What the translator of a compiler is told by default, for `-###`.
DEFAULT_EXTENSIONS = "+SPV_EXT_shader_atomic_float_add,+SPV_INTEL_blocking_pipes"


def main():
    root, release = options.kit()
    argv = sys.argv[1:]
    if options.answer(argv, release):
        return
    try:
        command = options.Command(argv)
    except options.Unknown as unknown:
        options.refuse(NAME, unknown)
    environment = {name: value for name, value in os.environ.items() if name.startswith(("IGC_", "SYCL_"))}
    with open(os.path.join(root, "command-lines-only.log"), "a", encoding="utf-8") as log:
        line = json.dumps({"argv": argv, "environment": environment, "path": os.environ.get("PATH", "")})
        log.write(line + "\n")
    if "-###" in argv:
        print(f'"{root}/bin/compiler/llvm-spirv" "-spirv-ext=-all,{DEFAULT_EXTENSIONS}" "-o" "x.spv"', file=sys.stderr)
        return
    options.run(["g++", *options.host_arguments(command)])


main()
