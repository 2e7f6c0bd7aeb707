"""Aggregates with members that need destruction, brace-built inside the full expression of a co_await.

g++ 12 destroys such a temporary twice. Strings, classes with constructors, trivial aggregates and named values are
safe. This is a search by pattern: a type whose definition is not in the tree counts as unsafe unless it is std's.
"""

import re

_SCALARS = re.compile(
    r"(?:const\s+|unsigned\s+|signed\s+)*(?:bool|char|short|int|long|long long|float|double|unsigned|(?:std::)?size_t|"
    r"(?:std::)?u?int\d+_t|(?:std::)?byte|std::string_view|std::chrono::\w+(?:<[^;]*>)?|\w+\s*\*)"
)
_MEMBER = re.compile(rf"\s*{_SCALARS.pattern}\s+\w+(?:\s*=[^;]*|\s*\{{[^;]*\}})?\s*")
_DEFINITION = re.compile(
    r"\b(struct|class|enum(?:\s+class)?)\s+(?:\[\[\w+\]\]\s*)?(\w+)(?:<[^;{}()]*>)?\s*(?:final\s*)?(:[^;{]*)?\{"
)
_NAME_BEFORE_BRACE = re.compile(r"((?:\w+::)*\w+)\s*(<[\w\s:,<>*&]*>)?\s*$")
_OPENS_BLOCK = {"mutable", "noexcept", "const", "else", "do", "try", "override", "final", "constexpr"}
_CLOSING = {"{": "}", "(": ")", "[": "]"}


def closing(code, start):
    """Position of the bracket that closes the one at `start`."""
    mine, theirs = code[start], _CLOSING[code[start]]
    depth = 0
    for position in range(start, len(code)):
        if code[position] == mine:
            depth += 1
        elif code[position] == theirs:
            depth -= 1
            if depth == 0:
                return position
    return len(code) - 1


def opening(code, end):
    theirs = code[end]
    mine = {close: open_ for open_, close in _CLOSING.items()}[theirs]
    depth = 0
    for position in range(end, -1, -1):
        if code[position] == theirs:
            depth += 1
        elif code[position] == mine:
            depth -= 1
            if depth == 0:
                return position
    return 0


def safe_types(codes):
    """Names of the types defined in `codes` that may stand in a co_await expression."""
    safe, unsafe = set(), set()
    for code in codes:
        for match in _DEFINITION.finditer(code):
            body_start = match.end() - 1
            body = code[body_start + 1 : closing(code, body_start)]
            name = match[2]
            constructor = rf"(?m)(?:^|[;{{}}:>])\s*(?:(?:explicit|constexpr|inline)\s+)*{name}\s*\("
            no_aggregate = re.search(constructor, body) or re.search(r"\b(?:private|protected)\s*:", body)
            members = [part for part in body.split(";") if part.strip()]
            trivial = match[3] is None and all(_MEMBER.fullmatch(part) for part in members)
            (safe if match[1].startswith("enum") or no_aggregate or trivial else unsafe).add(name)
    return safe - unsafe


def _brace_kind(code, brace):
    """What `{` opens: "type" with its name, "block", or "list" (a braced list without a type)."""
    before = code[:brace].rstrip()
    if not before or before[-1] in ")];{}":
        return "block", None
    named = _NAME_BEFORE_BRACE.search(before)
    if named is None:
        return "list", None
    name = named[1]
    if name in _OPENS_BLOCK or before[: named.start()].rstrip().endswith("->"):
        return "block", None
    if name in ("return", "co_return", "co_await", "co_yield"):
        return "list", None
    return "type", name


def _statement_start(code, position):
    """Walks back over balanced brackets and out of open parentheses to where the full expression begins."""
    while position > 0:
        position -= 1
        char = code[position]
        if char == ";":
            return position + 1
        if char in ")]":
            position = opening(code, position)
        elif char == "}":
            brace = opening(code, position)
            if _brace_kind(code, brace)[0] == "block" and not _inside_parentheses(code, brace):
                return position + 1
            position = brace
        elif char == "{" and _brace_kind(code, position)[0] == "block":
            return position + 1
    return 0


def _inside_parentheses(code, brace):
    """True for the body of a lambda that is an argument."""
    before = code[:brace].rstrip()
    while before.endswith((")", "]")):
        at = opening(before, len(before) - 1)
        if before[at] == "[":
            return True
        before = before[:at].rstrip()
    return False


def _statement_end(code, start):
    head = re.match(r"\s*(?:if|while|switch|for)\s*(?:constexpr\s*)?\(", code[start:])
    if head:
        return closing(code, start + head.end() - 1)
    position = start
    while position < len(code):
        if code[position] == ";":
            return position
        position = closing(code, position) + 1 if code[position] in _CLOSING else position + 1
    return len(code)


def _temporaries(code, start, end):
    """Position and type name of brace-built temporaries in [start, end), without the bodies of lambdas."""
    position = start
    while position < end:
        if code[position] == "{":
            kind, name = _brace_kind(code, position)
            if kind == "block":
                position = closing(code, position)
            elif kind == "type" and not _declares(code, start, position):
                yield position, name
        position += 1


def _declares(code, start, brace):
    """`T name{...}` builds a named value."""
    return re.fullmatch(r"\s*(?:const\s+)?[\w:]+(?:<[^{}()]*>)?[\s&]+\w+\s*", code[start:brace]) is not None


def find(code, safe):
    """Pairs of position and type name of suspicious temporaries."""
    found = {}
    for match in re.finditer(r"\bco_await\b", code):
        start = _statement_start(code, match.start())
        for position, name in _temporaries(code, start, _statement_end(code, start)):
            short = name.rsplit("::", 1)[-1]
            of_std = name.startswith("std::") and short != "array"
            if not of_std and short not in safe and not _SCALARS.fullmatch(name):
                found[position] = name
    return sorted(found.items())
