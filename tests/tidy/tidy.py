#!/usr/bin/env python3
"""Checks the house rules over the whole tree: tidy.py [root]. Prints file:line: [rule] message, ends with 1 if any."""

import os
import pathlib
import sys

import rules

SKIPPED = ("build", "__pycache__")


def read_tree(root):
    texts = {}
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and (name == ".ci" or name[0] != "."))
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            if path.suffix in rules.TEXT and not name.startswith("."):
                texts[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
    return rules.tree(texts)


def main():
    default = pathlib.Path(__file__).resolve().parents[2]
    files = read_tree(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)
    findings = rules.check(files)
    for path, line, rule, message in findings:
        print(f"{path}:{line}: [{rule}] {message}")
    print(f"tidy: {len(files.texts)} files, {len(rules.ALL)} rules, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
