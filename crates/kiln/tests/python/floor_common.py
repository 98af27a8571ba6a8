"""What every binding of the floor's test programs must do, and what it does wrong.

The scripts that load a binding make one `Programs` of its functions.
"""

import ctypes
import sys


class Programs:
    def __init__(self, ops):
        self.ops = ops
        self.process_wide = ctypes.CDLL("libstdc++.so.6")._ZSt19uncaught_exceptionsv
        self.process_wide.restype = ctypes.c_int
        self.faults = []

    def check(self, what, good, seen=None):
        if not good:
            self.faults.append(f"{what}: {seen!r}")

    def counts(self, when):
        ops, process_wide = self.ops, self.process_wide
        self.check(f"uncaught exceptions {when}, in the extension", ops.uncaught() == 0, ops.uncaught())
        self.check(f"uncaught exceptions {when}, in the process", process_wide() == 0, process_wide())

    def raises(self, kind, error, part):
        try:
            self.check(kind, False, self.ops.throws(kind, "boom"))
        except error as caught:
            self.check(kind, part in str(caught), str(caught))

    def run(self, work):
        """Those that neither take nor give a tensor, with `work` as a directory to work in."""
        ops, check = self.ops, self.check
        check("short text", ops.echo("hi") == "<hi>", ops.echo("hi"))
        check("long text", ops.echo("x" * 100000) == "<" + "x" * 100000 + ">")
        for program, arguments in [
            ("text", ["word"]),
            ("files", [work]),
            ("numbers", [1.7]),
            ("errors", ["word"]),
            ("threads", [4]),
            ("futures", []),
        ]:
            said = getattr(ops, program)(*arguments)
            check(program, said == "", said)
        check("sum", ops.parallel_sum(1000) == 499500, ops.parallel_sum(1000))

    def end(self, well):
        """Ends the script with all faults, or says that all is well."""
        if self.faults:
            sys.exit("\n".join(self.faults))
        print(well)
