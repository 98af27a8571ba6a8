"""`recording-icpx`: checks and keeps command lines of `icpx`, and compiles no device code.

Only the command line was checked: what it makes is g++'s, of sources without SYCL, and images without any code for the targets. An option that icpx does not have, or that is not in
the list of `options`, ends it. Each line is kept as JSON in `command-lines-only.log` of its toolkit.
"""

import json
import os
import sys
import time

import options

NAME = "recording-icpx (only the command line was checked)"
# What the translator of a compiler is told by default, for `-###`.
DEFAULT_EXTENSIONS = "+SPV_EXT_shader_atomic_float_add,+SPV_INTEL_blocking_pipes"


def hang(root, argv):
    """Never ends where a test wants that: `hangs` in the toolkit has the option."""
    told = os.path.join(root, "hangs")
    if not os.path.exists(told):
        return
    with open(told, encoding="utf-8") as file:
        if file.read() not in argv:
            return
    with open(os.path.join(root, "pid.new"), "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))
    os.rename(os.path.join(root, "pid.new"), os.path.join(root, "pid"))
    time.sleep(1000)


def main():
    root, release = options.kit()
    argv = sys.argv[1:]
    hang(root, argv)
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
    if command.links_device_code:
        options.link(command)
    else:
        options.run(["g++", *options.host_arguments(command)])


main()
