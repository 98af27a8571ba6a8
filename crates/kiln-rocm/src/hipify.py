# Converts files with torch's own converter: `hipify.py DIRECTORY (KIND NAME FILE OUTPUT)...`
#
# DIRECTORY holds the package `hipify`. Of an include directory there is the NAME alone. Every file is copied to its NAME in a fresh directory; the units among them are converted there,
# with what they include of it. Where the files are torch's own, all are converted, as torch's build converts itself. OUTPUT gets the converted file, or the file itself where there was nothing to convert.
import contextlib
import io
import os
import shutil
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
from hipify.hipify_python import hipify

of_torch = sys.argv[2] == "torch"
entries = [sys.argv[at : at + 4] for at in range(2, len(sys.argv), 4)]
files = [entry for entry in entries if entry[0] != "include"]
with tempfile.TemporaryDirectory() as scratch:
    root = os.path.realpath(scratch)
    place = lambda name: os.path.join(root, name)
    for _, name, file, _ in files:
        os.makedirs(os.path.dirname(place(name)), exist_ok=True)
        shutil.copyfile(file, place(name))
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            results = hipify(
                project_directory=root,
                output_directory=root,
                header_include_dirs=[name for kind, name, _, _ in entries if kind == "include"],
                includes=[root + "/*"],
                extra_files=[place(name) for kind, name, _, _ in files if kind == "unit"],
                is_pytorch_extension=not of_torch,
                hipify_extra_files_only=not of_torch,
                show_progress=False,
            )
    except BaseException:
        sys.stderr.write(said.getvalue())
        raise
    for _, name, _, output in files:
        result = results.get(place(name))
        converted = result.hipified_path if result is not None and result.hipified_path else place(name)
        shutil.copyfile(converted, output)
