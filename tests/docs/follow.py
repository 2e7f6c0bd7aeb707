#!/usr/bin/env python3
"""follow.py <page> <folder of programs>...: does what a page says, literally, and checks that it prints what the page shows.

A shell block is followed if a comment before it names a terminal: <!-- on: a -->. Each name is one shell that stays open,
so folders and variables last; it starts in an empty folder, with the given folders in PATH. Further words of the comment,
after commas:
  long        left out unless ZLINK_TEST_LONG is set
  needs X     left out where there is no program X
  fails       the last command must not end with 0, while otherwise it must
  at the end  comes last, and also when something before it went wrong
A text block right behind holds lines that must be printed in that order; others may stand between. Runs of white space are
alike, and an ellipsis stands for any text.
A page with <!-- needs: network namespaces --> is skipped, with 77, where this user or kernel has none."""

import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BLOCK_SECONDS = 60
SKIPPED = 77
MARK = "follow.py: the block ended with"

BLOCK = re.compile(r"<!-- on: (?P<on>[^>]*) -->\n```sh\n(?P<commands>.*?)```\n(?:\n?```text\n(?P<shows>.*?)```)?", re.DOTALL)


class Block:
    def __init__(self, page, found):
        self.line = page.count("\n", 0, found.start("commands")) + 1
        self.terminal, *self.words = [word.strip() for word in found["on"].split(",")]
        self.programs = [word[len("needs ") :] for word in self.words if word.startswith("needs ")]
        unknown = {word for word in self.words if not word.startswith("needs ")} - {"long", "fails", "at the end"}
        if unknown:
            raise SystemExit(f"line {self.line}: unknown: {', '.join(unknown)}")
        self.commands = found["commands"]
        self.shows = (found["shows"] or "").splitlines()


class Wrong(Exception):
    pass


class Terminal:
    """A shell that reads what a person would type."""

    def __init__(self, folder, environment):
        self.shell = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      cwd=folder, env=environment, start_new_session=True)

    def run(self, commands):
        """What the commands print, and how the last one ended."""
        self.shell.stdin.write(f"{commands}\nprintf '\\n%s %s\\n' '{MARK}' $?\n".encode())
        self.shell.stdin.flush()
        said, until = b"", time.monotonic() + BLOCK_SECONDS
        while not (ended := re.search(rb"\n%b (\d+)\n" % MARK.encode(), said)):
            ready, _, _ = select.select([self.shell.stdout], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self.shell.stdout.fileno(), 65536) if ready else b""
            if not piece:
                raise Wrong(f"{'the shell has ended' if ready else 'no end'} after:\n{said.decode(errors='replace')}")
            said += piece
        return said[: ended.start()].decode(errors="replace"), int(ended[1])

    def close(self):
        """With everything that was started in it: the whole session is ours."""
        try:
            os.killpg(self.shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.shell.wait()


def pattern_of(line):
    words = [".*".join(re.escape(piece) for piece in word.split("…")) for word in line.split()]
    return re.compile(r"\s*" + r"\s+".join(words) + r"\s*")


def missing(shows, said):
    printed = iter(said.splitlines())
    for line in shows:
        if line.strip() and not any(pattern_of(line).fullmatch(one) for one in printed):
            return line
    return None


def follow(block, terminal):
    began = time.monotonic()
    said, code = terminal.run(block.commands)
    print(f"-- line {block.line}, {block.terminal}, {time.monotonic() - began:.1f} s\n{block.commands}{said}", flush=True)
    if (code != 0) != ("fails" in block.words):
        raise Wrong(f"line {block.line}: ended with {code}")
    if (line := missing(block.shows, said)) is not None:
        raise Wrong(f"line {block.line}: did not print, at its place: {line}")


def namespaces_work():
    if shutil.which("ip") is None:
        return False
    probe = f"follow-{os.getpid()}"
    for words in (["add", probe], ["exec", probe, "true"], ["delete", probe]):
        if subprocess.run(["ip", "netns", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            return False
    return True


def main():
    text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    if "<!-- needs: network namespaces -->" in text and not namespaces_work():
        print(f"SKIPPED: {sys.argv[1]} needs network namespaces (root, a kernel that has them, iproute2)")
        return SKIPPED
    blocks = [Block(text, found) for found in BLOCK.finditer(text)]
    if "ZLINK_TEST_LONG" not in os.environ:
        blocks = [block for block in blocks if "long" not in block.words]
    for block in [block for block in blocks if not all(map(shutil.which, block.programs))]:
        print(f"LEFT OUT: line {block.line} needs {', '.join(block.programs)}")
        blocks.remove(block)
    environment = {**os.environ, "PATH": os.pathsep.join([*map(os.path.abspath, sys.argv[2:]), os.environ["PATH"]])}
    wrong, terminals = [], {}
    with tempfile.TemporaryDirectory(prefix="follow-") as folder:
        try:
            for block in sorted(blocks, key=lambda block: "at the end" in block.words):
                if wrong and "at the end" not in block.words:
                    continue
                if block.terminal not in terminals:
                    terminals[block.terminal] = Terminal(folder, environment)
                try:
                    follow(block, terminals[block.terminal])
                except Wrong as what:
                    wrong.append(str(what))
        finally:
            for terminal in terminals.values():
                terminal.close()
    print("\n".join([*wrong, f"follow: {len(blocks)} blocks, {len(wrong)} findings"]))
    return 1 if wrong or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
