#!/usr/bin/env python3
"""Every rule finds what it is for and leaves the innocent alone."""

import sys
import unittest

import rules


def found(rule, path, text, **others):
    """Lines that `rule` reports in `text`."""
    texts = {path: text, **{name.replace("__", "/") + ".hpp": other for name, other in others.items()}}
    return [line for where, line, name, _ in rules.check(rules.tree(texts)) if name == rule and where == path]


class banned_calls(unittest.TestCase):
    def test_sleep(self):
        for call in ("std::this_thread::sleep_for(1s);", "  sleep(1);", "  ::sleep(1);", "usleep(5);"):
            self.assertEqual(found("sleep", "tests/core/x.cpp", call), [1], call)
        for call in ("// sleep_for", 'log("usleep(5)");', "void sleep(int);", "sleeper.sleep(x);"):
            self.assertEqual(found("sleep", "zlink/x.cpp", call), [], call)

    def test_thread(self):
        for call in ("std::thread t{f};", "std::jthread t;", "pthread_create(&t, 0, f, 0);", "std::async(f);"):
            self.assertEqual(found("thread", "zlink/x.cpp", call), [1], call)
            self.assertEqual(found("thread", "tests/contract/x.cpp", call), [1], call)
            self.assertEqual(found("thread", "adapters/tcp/x.cpp", call), [], call)
            self.assertEqual(found("thread", "tests/core/x.cpp", call), [], call)
        for call in ("std::this_thread::get_id();", "std::thread::id who;", "std::thread::hardware_concurrency();"):
            self.assertEqual(found("thread", "zlink/x.cpp", call), [], call)

    def test_clock(self):
        for call in ("steady_clock::now();", "std::chrono::system_clock::now();", "x = time(nullptr);", "::clock_gettime(a, b);"):
            self.assertEqual(found("clock", "tests/contract/x.cpp", call), [1], call)
            self.assertEqual(found("clock", "zlink/clock.cpp", call), [], call)
        for call in ("time->now();", "store.time(0);", "end_time(0);", "std::chrono::system_clock::time_point wall_now();"):
            self.assertEqual(found("clock", "zlink/x.cpp", call), [], call)

    def test_random(self):
        self.assertEqual(found("random", "zlink/x.cpp", "\nstd::random_device r;"), [2])
        self.assertEqual(found("random", "zlink/x.cpp", "operand(1);"), [])


class includes(unittest.TestCase):
    def test_floors(self):
        for path, name in (
            ("zlink/x.cpp", "boost/asio.hpp"),
            ("zlink/x.cpp", "caf/io/middleman.hpp"),
            ("zlink/x.hpp", "adapters/caf/caf_link.hpp"),
            ("zlink/x.hpp", "relocation/unit.hpp"),
            ("zlink/hosting/x.hpp", "relocation/unit.hpp"),
            ("zlink/host/x.hpp", "adapters/caf/caf_link.hpp"),
            ("relocation/x.hpp", "hiredis/hiredis.h"),
            ("relocation/x.hpp", "adapters/caf/caf_link.hpp"),
            ("tests/core/x.cpp", "caf/all.hpp"),
        ):
            self.assertEqual(found("floors", path, f"#include <{name}>\n"), [1], name)
        for path, name in (
            ("adapters/x.cpp", "boost/asio.hpp"),
            ("zlink/x.cpp", "caf/actor.hpp"),
            ("relocation/x.cpp", "zlink/x.hpp"),
            ("zlink/host/x.cpp", "relocation/unit.hpp"),
        ):
            self.assertEqual(found("floors", path, f"#include <{name}>\n"), [], name)

    def test_without_caf(self):
        reached = found("without_caf", "zlink/deep.hpp", "\n#include <caf/actor.hpp>", zlink__packet='#include "zlink/deep.hpp"')
        self.assertEqual(reached, [2])
        self.assertEqual(found("without_caf", "zlink/deep.hpp", "#include <caf/actor.hpp>"), [])

    def test_dead_header(self):
        user = '#include "zlink/x.hpp"'
        self.assertEqual(found("dead_header", "zlink/x.hpp", "", zlink__y=""), [1])
        self.assertEqual(found("dead_header", "zlink/x.hpp", "", zlink__y=user), [])
        only_itself = rules.check(rules.tree({"zlink/x.hpp": "", "zlink/x.cpp": user}))
        self.assertEqual([finding[0] for finding in only_itself], ["zlink/x.hpp"])


class texts(unittest.TestCase):
    def test_unfinished(self):
        self.assertEqual(found("unfinished", "zlink/x.cpp", "\n// TO" "DO: later"), [2])
        self.assertEqual(found("unfinished", "README.md", "FIX" "ME"), [1])

    def test_file_size(self):
        self.assertEqual(found("file_size", "zlink/x.cpp", "\n" * 501), [501])
        self.assertEqual(found("file_size", "zlink/x.cpp", "\n" * 500), [])

    def test_exception_needs_rule_and_reason(self):
        call = "std::thread t{f};"
        self.assertEqual(found("thread", "zlink/x.cpp", f"{call} // tidy: allow thread: reason"), [])
        self.assertEqual(found("thread", "zlink/x.cpp", f"// tidy: allow thread: reason\n{call}"), [])
        self.assertEqual(found("thread", "zlink/x.cpp", f"{call} // tidy: allow thread: "), [1])
        self.assertEqual(found("thread", "zlink/x.cpp", f"{call} // tidy: allow clock: reason"), [1])


TYPES = """
struct named { std::string text; };
struct plain { int count = 0; std::int64_t sum{}; };
class guarded { public: guarded(int); std::string text; };
enum class level { low };
template <class T> class [[nodiscard]] outcome { public: outcome(T value) : v(value) {} T v; };
template <> class [[nodiscard]] outcome<void> { public: outcome() = default; std::string why; };
"""


class dropped_results(unittest.TestCase):
    def judge(self, statement):
        return found("dropped_result", "zlink/x.cpp", "task<void> f() {\n" + statement + "\n}\n")

    def test_found(self):
        self.assertEqual(self.judge("co_await as_result(g());"), [2])
        self.assertEqual(self.judge("h();\nco_await zlink::as_result(call.submit());"), [3])

    def test_used(self):
        for statement in (
            "[[maybe_unused]] const auto r = co_await zlink::as_result(g());",
            "if (co_await as_result(g())) { h(); }",
            "co_return co_await as_result(g());",
            "co_await g();",
        ):
            self.assertEqual(self.judge(statement), [])


class await_temporaries(unittest.TestCase):
    def judge(self, statement):
        return bool(found("await_temporary", "zlink/x.cpp", TYPES + "task<void> f() {\n" + statement + "\n}\n"))

    def test_found(self):
        for statement in (
            'co_await send(named{"x"});',
            'auto r = co_await ask(1, named{"x"}).submit<int>();',
            'call(named{"x"}, co_await other());',
            'if (co_await ask(named{"x"})) { g(); }',
            'co_return use(co_await ask(zlink::named{.text = "x"}));',
            "co_await ask(unknown_type<int>{1});",
            'co_await ask(std::array<named, 1>{});',
            'while (true) { g(); co_await ask(h(named{"x"})); }',
        ):
            self.assertTrue(self.judge(statement), statement)

    def test_a_nested_type_elsewhere_does_not_count(self):
        nested = "class other {\n  struct outcome { std::string text; };\n};"
        use = TYPES + "task<void> f() { co_return outcome<int>{co_await g()}; }"
        self.assertEqual(found("await_temporary", "zlink/x.cpp", use, zlink__other=nested), [])
        own = nested + "\ntask<void> f() { co_await g(outcome{}); }"
        self.assertEqual(found("await_temporary", "zlink/x.cpp", own, zlink__other=TYPES), [4])

    def test_safe(self):
        for statement in (
            'named n{"x"}; co_await send(n);',
            'auto n = named{"x"}; co_await send(n);',
            "co_await send(plain{1});",
            "co_await send(guarded{1});",
            "co_await send(level{});",
            'co_await send(std::string{"x"});',
            "co_return outcome<int>{co_await g()};",
            "co_await send(plain{std::int64_t{1}}, std::chrono::seconds{1});",
            'if (co_await g()) { send(named{"x"}); }',
            'co_await g([] { return named{"x"}; });',
            'co_await g([x](int) mutable { return named{"x"}; });',
            'co_await g([]() -> named { h(named{"x"}); });',
            'co_return named{"x"};',
            'h(named{"x"}); co_await g();',
            'co_await g(); h(named{"x"});',
            'co_await host.relocate({.deadline = 10s});',
            'const named n{co_await g()};',
            '// co_await send(named{"x"});',
        ):
            self.assertFalse(self.judge(statement), statement)


class await_choices(unittest.TestCase):
    def judge(self, statement):
        return bool(found("await_choice", "zlink/x.cpp", "task<void> f() {\n" + statement + "\n}\n"))

    def test_found(self):
        for statement in (
            "co_await (c ? a.yield() : b.submit());",
            "auto x = co_await (c\n  ? a : b);",
            "co_await c ? a.yield() : b.submit();",
            "co_return co_await call.submit<int>() ? 1 : 2;",
            "co_await as_result(c ? a.yield<int>() : a.submit<int>());",
        ):
            self.assertTrue(self.judge(statement), statement)

    def test_safe(self):
        for statement in (
            "auto t = c ? a.yield() : b.submit(); co_await std::move(t);",
            "co_await call.submit<int>(); x = c ? 1 : 2;",
            "co_await pause(c ? 1ms : 2ms);",
            "co_await g([c] { return c ? a.yield() : a.submit(); });",
            "if (co_await g()) x = c ? 1 : 2;",
            "const auto got = co_await (std::move(t)); h(c ? got : 0);",
            "// co_await (c ? a : b)",
        ):
            self.assertFalse(self.judge(statement), statement)


if __name__ == "__main__":
    sys.exit(unittest.main())
