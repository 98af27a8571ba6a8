"""Asks the checkers of others about shared objects.

Prints one line for each file and checker: the file's place among the arguments, the checker, and `ok` or what it found.
"""

import sys
from pathlib import Path

import kernel_abi_check
from abi3audit._audit import audit
from abi3audit._extract import SharedObjectSpec
from abi3info.models import PyVersion
from auditwheel.architecture import Architecture
from auditwheel.elfutils import elf_file_filter, elf_find_versioned_symbols
from auditwheel.libc import Libc
from auditwheel.policy import WheelPolicies

POLICY = "manylinux_2_28"
POLICIES = WheelPolicies(libc=Libc.GLIBC, arch=Architecture.x86_64)


def auditwheel(path):
    versions = {}
    for _, elf in elf_file_filter([Path(path)]):
        for library, version in elf_find_versioned_symbols(elf):
            versions.setdefault(library, set()).add(version)
    best = POLICIES.versioned_symbols_policy(versions)
    wanted = POLICIES.get_policy_by_name(f"{POLICY}_x86_64")
    return "ok" if best.priority >= wanted.priority else best.name


def kernels(path):
    found = kernel_abi_check.ObjectFile(path)
    violations = [*found.check_manylinux(POLICY), *found.check_python_abi("3.9")]
    return " ".join(str(violation) for violation in violations).replace("\n", " ") or "ok"


def abi3audit(path):
    found = []
    for shared in SharedObjectSpec(path)._extractor():
        result = audit(shared, assume_minimum_abi3=PyVersion(3, 9))
        # It takes Python names that the file defines for names that it wants.
        if not result:
            found.append(type(result).__name__)
    return " ".join(found) or "ok"


for index, path in enumerate(sys.argv[1:]):
    for name, checker in [("auditwheel", auditwheel), ("kernel-abi-check", kernels), ("abi3audit", abi3audit)]:
        print(index, name, checker(path), sep="\t")
