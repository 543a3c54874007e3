#!/usr/bin/env python3
"""Plants a violation of each rule in a small clean tree and expects the check to name that rule."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import checks
import metrics_page
import settings_page
import source_text

LINT = pathlib.Path(__file__).with_name("lint.py")

SETTINGS = 'TRIPTYCH_SETTING(threads, "TRIPTYCH_THREADS", "0", "compute "\n                 "threads")\n'
METRICS = ('TRIPTYCH_BUCKETS(kTimes, 0.1,\n  1)\n\n// Requests\n'
           'TRIPTYCH_METRIC(kHistogram, kTime, "time_seconds", "model,code", kTimes, "a "\n  "time")\n')

CLEAN = {
    "README.md": "# A tree without faults\n",
    "src/base/CMakeLists.txt": "triptych_module(NAME base SOURCES settings.cc)\n",
    "src/base/README.md": "# base\n",
    "src/base/settings.def": SETTINGS,
    "src/base/settings.h": "#pragma once\n\n#include <string>\n",
    "src/base/settings.cc": '#include "base/settings.h"\n\n#include <fmt/format.h>\n#include <fcntl.h>\n\n'
                            'const char* threads() { return getenv("TRIPTYCH_THREADS"); }\n',
    "src/ops/norm.h": '#pragma once\n\n#include "base/settings.h"\n',
    "src/models/zoo/llava.cc": '#include "ops/norm.h"\n',
    "src/engine/engine.h": "#pragma once\n",
    "src/cli/main.cc": '#include <CLI/CLI.hpp>\n\n#include "engine/engine.h"\n',
    "src/ops/norm_test.cc": '#include <gtest/gtest.h>\n\n#include "ref/norm_ref.h"\n',
    "src/observe/metrics.def": METRICS,
    "docs/settings.md": settings_page.page_of(SETTINGS),
    "docs/metrics.md": metrics_page.page_of(METRICS),
    "tests/eval/demo/data.txt": "TODO: data is not looked at",
}

# rule -> files that break it, each alone
VIOLATIONS = {
    "layer": [
        ("src/base/low.cc", '#include "engine/engine.h"\n'),
        ("src/ops/other.cc", '#include "models/model.h"\n'),
        ("src/models/zoo/other.cc", '#include "media/image/decode.h"\n'),
        ("src/models/zoo/paged.cc", '#include "cache/kv/page_pool.h"\n'),
        ("src/engine/step.cc", '#include "prep/preprocessor.h"\n'),
        ("src/engine/step.cc", '#include "text/tokenizer.h"\n'),
        ("src/engine/step.cc", '#include "media/image/recipe.h"\n'),
        ("src/engine/step.cc", '#include "backends/cpu/linear_levels.h"\n'),
        ("src/backends/cuda/x.cc", '#include "backends/cpu/cpu_isa.h"\n'),
        ("src/prep/x.cc", '#include "models/model.h"\n'),
        ("src/cli/chat.cc", '#include "engine/sampler.h"\n'),
        ("src/prep/x.cc", '#include "text/ffi.h"\n'),
        ("src/newcomer/x.cc", '#include "base/settings.h"\n'),
        ("src/ops/near.cc", '#include "norm.h"\n'),
    ],
    "third-party": [
        ("src/ops/json.cc", "#include <nlohmann/json.hpp>\n"),
        ("src/ops/print.h", "#pragma once\n#include <fmt/format.h>\n"),
        ("src/ops/unknown.cc", "#include <boost/asio.hpp>\n"),
        ("src/ops/curl.cc", "#include <zlib.h>\n"),
        ("src/ops/wide.cc", "#include <immintrin.h>\n"),
        ("src/ops/gpu.h", "#pragma once\nvoid run(cudaStream_t stream);\n"),
        ("src/ops/tree.h", "#pragma once\nvoid read(const nlohmann::json& value);\n"),
    ],
    "model-name": [
        ("src/engine/x.cc", "bool is_qwen2 = false;\n"),
        ("src/engine/x.cc", 'if (type == "llava_next") {}\n'),
        ("src/ops/x.h", "#pragma once\nstruct ClipVisionBlock {};\n"),
        ("src/cli/x.cc", "// as Mistral does\n"),
    ],
    "build-switch": [
        ("src/engine/x.cc", "#if TRIPTYCH_WITH_CUDA\n#endif\n"),
        ("tests/x.cc", "#ifdef TRIPTYCH_WITH_CUDA\n#endif\n"),
        ("bench/x.cc", "#if defined(OTHER) && defined(TRIPTYCH_WITH_CUDA)\n#endif\n"),
    ],
    "getenv": [
        ("src/engine/x.cc", 'const char* v = std::getenv("HOME");\n'),
        ("tests/x.cc", 'const char* v = getenv("HOME");\n'),
    ],
    "unfinished": [
        ("src/engine/x.cc", "// TODO: later\n"),
        ("tools/x.py", "# FIXME\n"),
        ("docs/x.md", "XXX\n"),
    ],
    "place": [
        ("bench/x.py", 'open("/work/data.txt")\n'),
        ("docs/x.md", "see /home/someone/triptych\n"),
        ("tools/x.sh", "pip install -i https://pypi.org/simple x\n"),
    ],
    "last-line": [("src/engine/x.cc", "int x;")],
    "file-name": [("src/engine/StepLoop.cc", "int x;\n"), ("tests/step-loop.cc", "int x;\n")],
    "pragma-once": [("src/engine/x.h", "struct X {};\n")],
    "folder-name": [("src/base/utils/x.h", "#pragma once\n"), ("tools/common/x.py", '"""x"""\n'),
                    ("src/media/helpers/x.h", "#pragma once\n")],
    "readme": [("src/engine/CMakeLists.txt", "triptych_module(NAME engine SOURCES engine.cc)\n")],
    "settings-page": [("docs/settings.md", "# Settings\n")],
    "metrics-page": [("docs/metrics.md", "# Metrics\n")],
    "format": [("src/engine/x.cc", "int   x ;\n")],
}

HARMLESS = [
    ("src/engine/x.cc", "// getenv() is for base/settings\nint clipped = clip(3);\nconst char* a = \"getenv(\";\n"),
    ("src/weights/name_map.cc", 'const char* kPrefix = "llava.";\n'),
    ("src/backends/cpu/rows-inl.h", "int x;\n"),
    ("tests/field/x_test.cc", '#include "engine/engine.h"\n#include "text/tokenizer.h"\n'),
    ("docs/x.md", "see tests/work/x and the workshop\n"),
]


def lint(root, *arguments):
    return subprocess.run([sys.executable, LINT, "--root", root, *arguments], text=True, capture_output=True,
                          check=False)


class LintTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="triptych_lint_"))
        self.addCleanup(shutil.rmtree, self.root)
        for path, text in CLEAN.items():
            self.write(path, text)
        if shutil.which("clang-format-16"):
            self.write(".clang-format", "BasedOnStyle: Google\n")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def test_clean_tree_passes(self):
        done = lint(self.root, "--no-format")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("lint: clean", done.stdout)

    def test_each_planted_violation_is_named(self):
        for rule, plants in VIOLATIONS.items():
            if rule == "format" and not shutil.which("clang-format-16"):
                continue
            for path, text in plants:
                with self.subTest(rule=rule, path=path, text=text):
                    file = self.write(path, text)
                    done = lint(self.root, *([] if rule == "format" else ["--no-format"]))
                    self.assertEqual(done.returncode, 1, done.stdout)
                    named = {line.split(": ")[1] for line in done.stdout.splitlines() if line.startswith(path + ":")}
                    self.assertEqual(named, {rule}, done.stdout)
                    file.unlink()
                    for folder in file.parents:
                        if folder == self.root or any(folder.iterdir()):
                            break
                        folder.rmdir()
                    if path in CLEAN:
                        self.write(path, CLEAN[path])

    def test_what_only_looks_like_a_violation_passes(self):
        for path, text in HARMLESS:
            self.write(path, text)
        done = lint(self.root, "--no-format")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_every_rule_has_a_violation(self):
        source = LINT.with_name("checks.py").read_text() + LINT.read_text()
        for rule in VIOLATIONS:
            self.assertIn(f'"{rule}"', source)
        planted = len(checks.FILE_CHECKS) + len(checks.TREE_CHECKS) + 3  # folders and made pages hold two rules each, format is apart
        self.assertEqual(len(VIOLATIONS), planted)

    def test_sizes_are_reported_and_do_not_fail(self):
        body = "".join(f"  x += {i};\n" for i in range(70))
        self.write("src/engine/long.cc", f"namespace a {{\nvoid grow(int x) {{\n{body}}}\n}}  // namespace a\n")
        self.write("src/engine/wide.cc", "int sum(int a, int b, int c, int d, int e, int f, int g) {\n  return a;\n}\n")
        self.write("src/engine/tall.cc", "int x;\n" * 401)
        done = lint(self.root, "--no-format", "--sizes")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("src/engine/long.cc:2: grow has 72 lines", done.stdout)
        self.assertIn("src/engine/wide.cc:1: sum has 7 parameters", done.stdout)
        self.assertIn("src/engine/tall.cc: 401 lines", done.stdout)


class SourceTextTest(unittest.TestCase):
    def test_comments_and_literals_are_blanked_in_place(self):
        text = 'int a = 1\'000; // {\nconst char* s = "}{\\"";\nauto r = R"(})"; /* {\n{ */ char c = \'{\';\n'
        code = source_text.code_of(text)
        self.assertEqual(len(code), len(text))
        self.assertEqual(code.count("\n"), text.count("\n"))
        self.assertNotIn("{", code)
        self.assertNotIn("}", code)

    def test_functions_are_found_in_namespaces_and_classes(self):
        text = ("namespace n {\nstruct S {\n  int f() const { return 1; }\n  int x = 0;\n};\n"
                "S::S(std::map<int, int> m, int y)\n    : a(m), b{y} {\n  auto l = [](int q) { return q; };\n}\n"
                "void g();\n}\n")
        found = [(f.name, f.line, f.lines, f.parameters) for f in source_text.functions_of(text)]
        self.assertEqual(found[0], ("f", 3, 1, 0))
        self.assertEqual(found[1], ("S::S", 6, 4, 2))
        self.assertEqual(len(found), 2)


if __name__ == "__main__":
    os.chdir(tempfile.gettempdir())
    unittest.main()
