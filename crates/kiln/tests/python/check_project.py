"""Asks the `kernels` package what it thinks of a built project.

usage: PYTHON check_project.py PROJECT [--load] [--unreadable]

PYTHON has the `kernels` package; torch is not needed. Every variant in PROJECT/build must have a name, metadata and a digest that the
loader accepts. With --load, the noarch variant for cpu is loaded too, in both of the loader's ways. With
--unreadable, `build.toml` has what only Kiln reads, and nothing is compared with it. One line is printed per variant.
"""

import argparse
import sys
from pathlib import Path

import kernels
import kernels._rust as rust
from kernels.variants import parse_variant


def check_variant(project: "rust.Build | None", path: Path) -> str:
    name = path.name
    variant = parse_variant(name)
    assert variant.variant_str == name, f"{name} reads back as {variant.variant_str}"

    metadata = rust.Metadata.read_from_file(path / "metadata.json")
    backend = metadata.backend.backend_type
    if project is not None:
        assert backend in project.general.backends, (name, backend)
        assert list(metadata.kernel_depends) == list(project.all_kernel_depends(backend)), name
    assert metadata.id.startswith(f"_{metadata.name.python_name}_"), (name, metadata.id)
    assert metadata.kernels_minver is not None, name
    assert metadata.provenance is not None, name

    actual = rust.Digest.hash_variant(rust.DigestAlgorithm.SHA256, path)
    assert metadata.digest is not None, name
    metadata.digest.validate(actual)
    assert "_ops.py" in actual.files, name
    assert "__init__.py" in actual.files, name

    libraries = [file for file in actual.files if file.endswith((".so", ".pyd"))]
    noarch = name.count("-") == 1
    end = ".so" if name.startswith("tvm-ffi") else ".abi3.so"
    assert libraries == ([] if noarch else [f"{metadata.id}{end}"]), (name, libraries)
    return metadata.id


def load(path: Path, expected: str) -> None:
    module = kernels.get_local_kernel(path, backend="cpu")
    assert module.__name__ == expected, (module.__name__, expected)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("project", type=Path)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--unreadable", action="store_true")
    arguments = parser.parse_args()

    if arguments.unreadable:
        try:
            rust.Build.open(str(arguments.project))
        except ValueError:
            project = None
        else:
            raise AssertionError("the `kernels` package reads it")
    else:
        project = rust.Build.open(str(arguments.project))
    build = arguments.project / "build"
    variants = sorted(path for path in build.iterdir() if path.is_dir() and not path.name.startswith("."))
    assert variants, f"no variants in {build}"
    ids = {path.name: check_variant(project, path) for path in variants}
    if arguments.load:
        # The variant itself, then the loader's own choice among all of them.
        load(build / "torch-cpu", ids["torch-cpu"])
        load(arguments.project, ids["torch-cpu"])
    for name, identity in ids.items():
        print(name, identity)
    return 0


if __name__ == "__main__":
    sys.exit(main())
