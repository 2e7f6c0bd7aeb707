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


def judge_types(code):
    """Of the types defined in `code`: names that may stand in a co_await expression, and names that may not.

    Each set holds (name, whether the definition is nested in another).
    """
    safe, unsafe = set(), set()
    for match in _DEFINITION.finditer(code):
        body_start = match.end() - 1
        body = code[body_start + 1 : closing(code, body_start)]
        name = match[2]
        constructor = rf"(?m)(?:^|[;{{}}:>])\s*(?:(?:explicit|constexpr|inline)\s+)*{name}\s*\("
        no_aggregate = re.search(constructor, body) or re.search(r"\b(?:private|protected)\s*:", body)
        members = [part for part in body.split(";") if part.strip()]
        trivial = match[3] is None and all(_MEMBER.fullmatch(part) for part in members)
        nested = match.start() > 0 and code[match.start() - 1] in " \t"
        (safe if match[1].startswith("enum") or no_aggregate or trivial else unsafe).add((name, nested))
    return safe, unsafe


class known_types:
    """Judgement of a name in a file: what the file defines counts first, then what others define outside of classes."""

    def __init__(self, codes):
        self._by_path = {path: judge_types(code) for path, code in codes.items()}
        outer = [{name for names in sides for name, nested in names if not nested} for sides in zip(*self._by_path.values())]
        every = [{name for names in sides for name, _ in names} for sides in zip(*self._by_path.values())]
        self._outer_safe, self._outer_unsafe = outer or (set(), set())
        self._any_safe, self._any_unsafe = every or (set(), set())

    def safe(self, path, name):
        own_safe, own_unsafe = ({known for known, _ in names} for names in self._by_path[path])
        for safe, unsafe in (
            (own_safe, own_unsafe),
            (self._outer_safe, self._outer_unsafe),
            (self._any_safe, self._any_unsafe),
        ):
            if name in unsafe:
                return False
            if name in safe:
                return True
        return False


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


def _operand(code, start):
    """Of the operand that begins at `start`: its bracketed parts, as (position, whether it begins the operand), and its
    end."""
    parts = []
    position = start
    while position < len(code):
        char = code[position]
        if char in _CLOSING:
            parts.append((position, code[start:position].strip() == ""))
            position = closing(code, position) + 1
        elif char.isalnum() or char in "_:.<>&* \n\t" or code.startswith("->", position):
            position += 2 if code.startswith("->", position) else 1
        else:
            break
    return parts, position


def _outer(code, start, end):
    """The text in [start, end) without what stands in brackets."""
    text = []
    position = start
    while position < end:
        if code[position] in _CLOSING:
            position = closing(code, position)
        else:
            text.append(code[position])
        position += 1
    return "".join(text)


def find_choices(code):
    """Positions of awaits that choose what to await: `co_await (c ? a : b)`, `co_await c ? a : b`, and a choice between
    calls among the arguments."""
    for match in re.finditer(r"\bco_await\b", code):
        parts, end = _operand(code, match.end())
        chosen = end < len(code) and code[end] == "?"
        for at, begins in parts:
            inside = code[at + 1 : closing(code, at)]
            if code[at] == "(" and "?" in _outer(inside, 0, len(inside)):
                chosen = chosen or begins or re.search(r"\b(?:submit|yield)\b", inside) is not None
        if chosen:
            yield match.start()


def find(code, is_safe):
    """Pairs of position and type name of suspicious temporaries; `is_safe` judges a type by its unqualified name."""
    found = {}
    for match in re.finditer(r"\bco_await\b", code):
        start = _statement_start(code, match.start())
        for position, name in _temporaries(code, start, _statement_end(code, start)):
            short = name.rsplit("::", 1)[-1]
            of_std = name.startswith("std::") and short != "array"
            if not of_std and not is_safe(short) and not _SCALARS.fullmatch(name):
                found[position] = name
    return sorted(found.items())
