#!/usr/bin/env python3
"""excerpts.py [root]: every C++ block of README.md, docs/ and samples/ must stand, line by line, in the file that the comment
before it names: <!-- from: path -->. Prints what does not, and ends with 1 if anything does not."""

import pathlib
import re
import sys

BLOCK = re.compile(r"(?:<!-- from: (?P<source>\S+) -->\n)?```cpp\n(?P<code>.*?)```", re.DOTALL)


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def stands_in(code, source):
    wanted, there = lines_of(code), lines_of(source)
    return any(there[i : i + len(wanted)] == wanted for i in range(len(there)))


def check(root):
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md")), *sorted((root / "samples").rglob("*.md"))]
    wrong, checked = [], 0
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            checked += 1
            where = f"{page.relative_to(root)}:{text.count(chr(10), 0, block.start()) + 1}"
            source = block["source"]
            if source is None:
                wrong.append(f"{where}: a C++ block without <!-- from: path -->")
            elif not (root / source).exists():
                wrong.append(f"{where}: there is no {source}")
            elif not stands_in(block["code"], (root / source).read_text(encoding="utf-8")):
                wrong.append(f"{where}: this does not stand in {source}")
        for link in re.finditer(r"\]\((?!https?:)([^)#]+)", BLOCK.sub("", text)):
            if not (page.parent / link[1]).exists():
                wrong.append(f"{page.relative_to(root)}: broken link {link[1]}")
    return wrong, checked


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    wrong, checked = check(root)
    print("\n".join([*wrong, f"excerpts: {checked} blocks, {len(wrong)} findings"]))
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
