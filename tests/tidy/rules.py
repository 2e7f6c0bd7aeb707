"""The house rules that a compiler does not check. Each rule is a function: tree -> (path, line, message)."""

import re
from functools import partial

import await_temporaries
from cpp_text import code_of, includes_of, line_of

CPP = (".hpp", ".cpp")
TEXT = CPP + (".py", ".cmake", ".txt", ".md", ".json", ".yaml", ".yml", ".in", "")
MAX_LINES = 500


class tree:
    """Texts by path below the project's root, with "/" on every system."""

    def __init__(self, texts):
        self.texts = texts
        self.code = {path: code_of(text) for path, text in texts.items() if path.endswith(CPP)}
        self.includes = {path: includes_of(code) for path, code in self.code.items()}


def _banned(pattern, message, allowed):
    """A rule against a pattern in code, everywhere but in paths that start with one of `allowed`."""
    expression = re.compile(pattern)

    def rule(files):
        for path, code in files.code.items():
            if not path.startswith(allowed):
                for match in expression.finditer(code):
                    yield path, line_of(code, match.start()), message + ": " + match[0].strip()

    return rule


sleep = _banned(
    r"\b(?:sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep)\b|(?:\A|[;{}(]|\s::)\s*sleep\s*\(",
    "wait for an event, not for time",
    (),
)
thread = _banned(
    r"\bstd::(?:jthread|async)\b|\bstd::thread\b(?!::(?:id|hardware_concurrency))|\bpthread_create\b",
    "threads come from the injected factory",
    ("adapters/", "zlink/execution/system_executor.cpp", "tests/core/", "tests/bench/", "tests/e2e/", "tests/programs/", "samples/"),
)
clock = _banned(
    r"\b\w*_clock::now\b|\b(?:clock_gettime|gettimeofday|timespec_get)\b|(?<![\w.>])(?:std::|::)?time\s*\(\s*(?:nullptr|NULL|0|&\w+)\s*\)",
    "time comes from zlink/clock.hpp",
    ("zlink/clock.cpp", "tests/bench/"),
)
random = _banned(
    r"\bstd::random_device\b|\bgetrandom\b|(?<![\w.>])s?rand\s*\(",
    "random numbers come from zlink/clock.hpp",
    ("zlink/clock.cpp",),
)


def unfinished(files):
    """Work is finished or it is not there."""
    word = re.compile(r"\b(?:TO" r"DO|FIX" r"ME)\b")
    for path, text in files.texts.items():
        for match in word.finditer(text):
            yield path, line_of(text, match.start()), "unfinished work"


def file_size(files):
    for path, text in files.texts.items():
        lines = text.count("\n")
        if lines > MAX_LINES:
            yield path, lines, f"{lines} lines; a file holds one idea in at most {MAX_LINES}"


# Begin of a path, then the includes that may not stand there. A host is made of everything, moves included.
_FLOORS = (
    ("zlink/", r"(?:adapters|tests|samples)/"),
    ("zlink/(?!host/)", r"relocation/"),
    ("relocation/", r"(?:adapters|tests|samples)/"),
    ("adapters/", r"(?:tests|samples)/"),
    ("zlink/", r"boost/|hiredis|yaml-cpp/|caf/(?:io|openssl)/"),
    ("relocation/", r"boost/|hiredis|yaml-cpp/|caf/(?:io|openssl)/"),
    ("", r"caf/all\.hpp$"),
)


def floors(files):
    """No include runs upward, and the model knows no outside world but CAF's core."""
    for path, includes in files.includes.items():
        for line, name in includes:
            if any(re.match(floor, path) and re.match(ban, name) for floor, ban in _FLOORS):
                yield path, line, f"{name} may not be included here"


# What a client shares with a server without having CAF.
_WITHOUT_CAF = ("zlink/packet.hpp", "zlink/error.hpp", "zlink/identity.hpp", "zlink/location_store.hpp", "zlink/connector.hpp")


def without_caf(files):
    for root in _WITHOUT_CAF:
        seen, open_ = set(), [root]
        while open_:
            path = open_.pop()
            if path in seen or path not in files.includes:
                continue
            seen.add(path)
            for line, name in files.includes[path]:
                if name.startswith("caf/"):
                    yield path, line, f"{name} reaches {root}, which must do without CAF"
                open_.append(name)


def dead_header(files):
    """A header that only its own .cpp includes is no interface."""
    included = {}
    for path, includes in files.includes.items():
        folder = path.rsplit("/", 1)[0]
        for _, name in includes:
            for target in (name, f"{folder}/{name}"):
                included.setdefault(target, set()).add(path)
    for path in files.code:
        alone = ("zlink/zlink.hpp", "zlink/connector.hpp", "zlink/caf/precompiled.hpp")
        if path.endswith(".hpp") and path not in alone and not path.startswith("zlink/testing/"):
            if not included.get(path, set()) - {path, path[: -len("hpp")] + "cpp"}:
                yield path, 1, "nobody includes this header"


def await_temporary(files):
    """See await_temporaries."""
    types = await_temporaries.known_types(files.code)
    for path, code in files.code.items():
        for position, name in await_temporaries.find(code, partial(types.safe, path)):
            yield path, line_of(code, position), f"name the {name} first: g++ 12 destroys it twice in a co_await expression"


def await_choice(files):
    """See await_temporaries."""
    for path, code in files.code.items():
        for position in await_temporaries.find_choices(code):
            yield path, line_of(code, position), "choose and name the task first: g++ 12 runs both sides inside a co_await"


def dropped_result(files):
    """clang refuses to compile an awaited result that nobody looks at; g++ 12 says nothing."""
    for path, code in files.code.items():
        for found in re.finditer(r"(?:^|[;{}])\s*(co_await (?:zlink::)?as_result\()", code):
            yield path, line_of(code, found.start(1)), "clang demands that the result is used: name it [[maybe_unused]]"


ALL = {
    "sleep": sleep,
    "thread": thread,
    "clock": clock,
    "random": random,
    "unfinished": unfinished,
    "file_size": file_size,
    "floors": floors,
    "without_caf": without_caf,
    "dead_header": dead_header,
    "await_temporary": await_temporary,
    "await_choice": await_choice,
    "dropped_result": dropped_result,
}


def check(files):
    """All findings as (path, line, rule, message), except lines that say `tidy: allow <rule>: <reason>`.

    The remark stands on the line itself or the one above; for a whole file (dead_header, file_size) on any line.
    """
    findings = []
    for name, rule in ALL.items():
        allow = re.compile(rf"tidy: allow {name}: \S")
        for path, line, message in rule(files):
            lines = files.texts[path].split("\n")
            near = lines if name in ("dead_header", "file_size") else lines[max(0, line - 2) : line]
            if not any(allow.search(text) for text in near):
                findings.append((path, line, name, message))
    return sorted(findings)
