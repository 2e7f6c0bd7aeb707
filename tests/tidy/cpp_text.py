"""C++ text without comments and without the contents of strings, line for line, so that rules meet code only."""

import re

_TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<raw>R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<digit>\b\d[\w']*)
  | (?P<char>'(?:\\.|[^'\\\n])+')
    """,
    re.VERBOSE | re.DOTALL,
)


def code_of(text):
    def blank(match):
        if match["digit"]:
            return match[0]  # 1'000 holds no character literal
        keep = "" if match["comment"] else '""' if not match["char"] else "''"
        return keep + "\n" * match[0].count("\n")

    # An include names a file; it is no string to forget.
    lines = [line if line.lstrip().startswith("#include") else None for line in text.split("\n")]
    stripped = _TOKEN.sub(blank, text).split("\n")
    return "\n".join(kept if kept is not None else line for kept, line in zip(lines, stripped))


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)


def includes_of(code):
    """Pairs of line number and included name."""
    return [(line_of(code, match.start(1)), match[1]) for match in _INCLUDE.finditer(code)]


def line_of(text, position):
    return text.count("\n", 0, position) + 1
