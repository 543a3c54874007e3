"""The checks themselves: each takes a file of the tree and yields what is wrong with it."""

import dataclasses
import pathlib
import re

import metrics_page
import rules
import settings_page
import source_text

CPP = {".h", ".cc", ".cu", ".cuh"}
HEADERS = {".h", ".cuh"}
CODE = CPP | {".def", ".py", ".rs", ".sh", ".cmake", ".proto", ".js", ".ts"}
TEXT = CODE | {".md", ".txt", ".toml", ".json", ".yml", ".yaml", ".in", ".jinja", ".lock", ""}

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
_BUILD_SWITCH = re.compile(r"^[ \t]*#[ \t]*(?:el)?if.*TRIPTYCH_WITH_\w+", re.MULTILINE)
_GETENV = re.compile(r"\b(?:secure_)?getenv\s*\(")
_UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
_MODEL_NAME = re.compile(rules.MODEL_NAMES, re.IGNORECASE)
_MODEL_NAME_EXACT = re.compile(rules.MODEL_NAMES_EXACT)
_FOREIGN_TYPE = re.compile(rules.FOREIGN_TYPES)
_PLACE = re.compile(rules.PLACES)
_TEST_NAME = re.compile(r"_(?:test|fixture)\.(?:cc|h)$|/test_\w+\.(?:cc|h)$")
_FILE_NAME = re.compile(r"[a-z][a-z0-9_]*(?:[.-]inl)?\.(?:h|cc|cu|cuh|def)(?:\.in)?$")


@dataclasses.dataclass
class Finding:
    """A broken rule, at a line of a file (1 when it is about the whole file)."""

    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


@dataclasses.dataclass
class SourceFile:
    """A text file of the tree: `path` is relative to the root, with forward slashes."""

    path: str
    text: str

    @property
    def suffix(self):
        return pathlib.PurePosixPath(self.path).suffix

    @property
    def is_test(self):
        """Tests beside the code are x_test.cc; what several of them share, test_x.h or x_fixture.cc."""
        return self.path.startswith("tests/") or _TEST_NAME.search(self.path) is not None

    def find(self, pattern, rule, message, text=None):
        """A finding for each match of `pattern`; {0} in `message` is what matched."""
        for match in pattern.finditer(self.text if text is None else text):
            yield Finding(self.path, self.line_of(match.start()), rule,
                          message.format(match.group(0).strip()))

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1


def _exempt(path, exceptions):
    return any(path.startswith(start) for start in exceptions)


def module_of(path_in_src):
    """The module that a path below src/ belongs to, or None."""
    owners = [m for m in rules.LAYERS if path_in_src.startswith(m + "/")]
    return max(owners, key=len) if owners else None


# --------------------------------------------------------------------------------------------------
# One file at a time


def check_layers(file):
    """Own headers: only those of modules that the table lets this one see."""
    if not file.path.startswith("src/") or file.suffix not in CPP:
        return
    module = module_of(file.path[len("src/"):])
    if module is None:
        yield Finding(file.path, 1, "layer", "this folder has no row in tools/lint/rules.py")
        return
    for match in _INCLUDE.finditer(file.text):
        name, line = match.group(2), file.line_of(match.start())
        if match.group(1) == "<" or _third_party(name) is not None:
            continue
        if file.is_test and name.split("/")[0] in rules.TEST_FOLDERS:
            continue
        target = module_of(name)
        if target is None:
            yield Finding(file.path, line, "layer", f'"{name}" is no header below src/: write its path from there')
        elif target != module and target not in rules.LAYERS[module] and name not in rules.LAYERS[module]:
            yield Finding(file.path, line, "layer", f"{module} may not include {target} (\"{name}\")")
        elif rules.PRIVATE_HEADERS.get(name, module) != module.split("/")[0] and name in rules.PRIVATE_HEADERS:
            yield Finding(file.path, line, "layer", f'"{name}" stays inside {rules.PRIVATE_HEADERS[name]}')


def _third_party(name):
    return next((start for start in rules.THIRD_PARTIES if name.startswith(start)), None)


def check_third_parties(file):
    """Libraries: each include only where the table puts it, and no foreign type in a header."""
    if file.suffix not in CPP or file.path.startswith("rust/"):
        return
    for match in _INCLUDE.finditer(file.text):
        name, line = match.group(2), file.line_of(match.start())
        known = _third_party(name)
        if known is None:
            standard = "." not in name and "/" not in name
            if match.group(1) == "<" and not standard and not name.startswith(rules.SYSTEM_HEADERS):
                yield Finding(file.path, line, "third-party", f"<{name}> has no row in tools/lint/rules.py")
            continue
        places = rules.THIRD_PARTIES[known]
        allowed = ("@cc" in places and file.suffix in (".cc", ".cu")) or file.is_test or _exempt(file.path, places)
        if not allowed:
            where = ", ".join(p.replace("@cc", "any .cc file").replace("@test", "tests") for p in places)
            yield Finding(file.path, line, "third-party", f"{name} may be included only in {where}")
    private = any(file.path == "src/" + header for header in rules.PRIVATE_HEADERS)
    if file.path.startswith("src/") and file.suffix in HEADERS and not private and not file.is_test:
        yield from file.find(_FOREIGN_TYPE, "third-party", "{0} in a header: keep it behind our own type",
                             source_text.code_of(file.text))


def check_model_names(file):
    """Code outside models/ and tests is named by role."""
    if not file.path.startswith("src/") or file.suffix not in CPP | {".def"} or file.is_test:
        return
    if _exempt(file.path, rules.MODEL_NAME_EXCEPTIONS):
        return
    message = "{0} is a model's name: outside src/models, name by role"
    yield from file.find(_MODEL_NAME, "model-name", message)
    yield from file.find(_MODEL_NAME_EXACT, "model-name", message)


def check_build_switches(file):
    if file.suffix in CPP | {".def", ".in"}:
        yield from file.find(_BUILD_SWITCH, "build-switch",
                             "CMake decides which folders are linked; C++ never asks ({0})")


def check_getenv(file):
    if file.suffix in CPP and file.path not in rules.GETENV_FILES:
        yield from file.find(_GETENV, "getenv", "the environment is read in base/settings alone",
                             source_text.code_of(file.text))


def check_unfinished(file):
    if not file.path.startswith("tools/lint/"):
        yield from file.find(_UNFINISHED, "unfinished", "{0}: finish it or leave it out")


def check_places(file):
    if not _exempt(file.path, rules.PLACE_EXCEPTIONS):
        yield from file.find(_PLACE, "place", "{0}: no path of one machine, no address of a registry")


def check_last_line(file):
    if file.text and not file.text.endswith("\n"):
        yield Finding(file.path, file.text.count("\n") + 1, "last-line", "the file does not end with a newline")


def check_file_names(file):
    name = file.path.rsplit("/", 1)[-1]
    if file.path.startswith(("src/", "bench/", "tests/")) and file.suffix in CPP and not _FILE_NAME.match(name):
        yield Finding(file.path, 1, "file-name", f"{name} is not snake_case")


def check_header_guard(file):
    included_again = file.path.endswith(("-inl.h", ".inl.h"))
    if file.path.startswith(("src/", "bench/", "tests/")) and file.suffix in HEADERS and not included_again:
        if "#pragma once" not in file.text:
            yield Finding(file.path, 1, "pragma-once", "a header starts with #pragma once")


FILE_CHECKS = [check_layers, check_third_parties, check_model_names, check_build_switches, check_getenv,
               check_unfinished, check_places, check_last_line, check_file_names, check_header_guard]


# --------------------------------------------------------------------------------------------------
# The tree as a whole


def check_folders(files):
    """A thing without a name has no home, and every module says what it is."""
    seen = set()
    for file in files:
        for folder in pathlib.PurePosixPath(file.path).parts[:-1]:
            if folder in rules.NAMELESS_FOLDERS and (folder, file.path.split(folder)[0]) not in seen:
                seen.add((folder, file.path.split(folder)[0]))
                yield Finding(file.path, 1, "folder-name", f"a folder named {folder} says nothing: name what is in it")
    paths = {file.path for file in files}
    for file in files:
        if file.path.startswith("src/") and file.path.endswith("/CMakeLists.txt") and "triptych_module(" in file.text:
            folder = file.path.rsplit("/", 1)[0]
            if folder + "/README.md" not in paths:
                yield Finding(file.path, 1, "readme", f"{folder} has no README.md")


def check_made_pages(files):
    """Pages that are made from a table must not lag behind it."""
    by_path = {file.path: file.text for file in files}
    for made, rule in ((settings_page, "settings-page"), (metrics_page, "metrics-page")):
        table = by_path.get(made.TABLE)
        if table is not None and by_path.get(made.PAGE) != made.page_of(table):
            yield Finding(made.PAGE, 1, rule,
                          f"does not say what {made.TABLE} says: run tools/lint/{made.__name__}.py")


TREE_CHECKS = [check_folders, check_made_pages]


def size_report(files):
    """Files, functions and parameter lists over the limits of the house, longest first."""
    out = []
    for file in files:
        limit = rules.MAX_LINES.get(file.suffix)
        if limit is None or not file.path.startswith(("src/", "bench/", "tests/")):
            continue
        lines = file.text.count("\n")
        if lines > limit:
            out.append((lines / limit, f"{file.path}: {lines} lines (limit about {limit})"))
        for function in source_text.functions_of(file.text):
            where = f"{file.path}:{function.line}: {function.name}"
            if function.lines > rules.MAX_FUNCTION_LINES:
                out.append((function.lines / rules.MAX_FUNCTION_LINES, f"{where} has {function.lines} lines"))
            if function.parameters > rules.MAX_PARAMETERS:
                out.append((function.parameters / rules.MAX_PARAMETERS,
                            f"{where} has {function.parameters} parameters"))
    return [line for _, line in sorted(out, key=lambda item: -item[0])]
