#!/usr/bin/env python3
"""run_program.py <executable> <expected>: the program must end with 0 and print the lines of the file `expected` in that
order; other lines may stand between. A line in slashes is a regular expression for a whole line. A first line that begins
with "$ " holds arguments for the program."""

import pathlib
import re
import shlex
import subprocess
import sys

LIMIT_SECONDS = 120


def matches(expected, line):
    if len(expected) > 2 and expected[0] == expected[-1] == "/":
        return re.fullmatch(expected[1:-1], line) is not None
    return expected == line


def main():
    program, expected = sys.argv[1:]
    lines = pathlib.Path(expected).read_text(encoding="utf-8").splitlines()
    arguments = shlex.split(lines.pop(0)[2:]) if lines and lines[0].startswith("$ ") else []
    run = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=LIMIT_SECONDS,
                         text=True)
    print(run.stdout, end="")
    if run.returncode != 0:
        print(f"{program} ended with {run.returncode}")
        return 1
    printed = iter(run.stdout.splitlines())
    for wanted in lines:
        if not any(matches(wanted, line) for line in printed):
            print(f"{program} did not print, at its place: {wanted}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
