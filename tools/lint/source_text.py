"""Reads C++ just well enough for the checks: comments and literals blanked, functions measured."""

import dataclasses
import re

_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^()\s\\]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)
_DIGIT_SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")
_NOT_A_FUNCTION = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b[^()]*$")
_BRACED_VALUE = ("", -1)
_PREPROCESSOR = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)


@dataclasses.dataclass
class Function:
    """A function definition: its name, first line, number of lines and of parameters."""

    name: str
    line: int
    lines: int
    parameters: int


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def code_of(text):
    """`text` with comments and literals replaced by blanks; lines and columns stay the same."""
    return _TOKEN.sub(_blank, _DIGIT_SEPARATOR.sub("_", text))


def functions_of(text):
    """The functions defined in a C++ file, outermost only (a lambda counts to its function)."""
    code = _PREPROCESSOR.sub(_blank, code_of(text))
    found = []
    # One entry a brace: None for a namespace or type, else (head, start offset).
    open_scopes = []
    head_start = 0
    for match in re.finditer(r"[{};]", code):
        at = match.start()
        inside_function = any(scope is not None and scope is not _BRACED_VALUE for scope in open_scopes)
        if match.group() == ";":
            head_start = at + 1
        elif match.group() == "{":
            head = code[head_start:at]
            if not inside_function and re.search(r"[\w>]$", head):
                open_scopes.append(_BRACED_VALUE)  # b{y} in a constructor's list, int x{0}
                continue
            if inside_function or ")" not in head or _NOT_A_FUNCTION.search(head):
                open_scopes.append(None if not inside_function else ("", at))
            else:
                open_scopes.append((head, head_start + len(head) - len(head.lstrip())))
            head_start = at + 1
        else:
            scope = open_scopes.pop() if open_scopes else None
            if scope is _BRACED_VALUE:
                continue
            if scope is not None and scope[0] and not any(open_scopes):
                found.append(_measure(code, scope[0], scope[1], at))
            head_start = at + 1
    return found


def _measure(code, head, start, end):
    first = code.count("\n", 0, start) + 1
    last = code.count("\n", 0, end) + 1
    name = re.search(r"([\w:~]+|operator\W+)\s*\(", head)
    return Function(name.group(1).strip() if name else "?", first, last - first + 1,
                    _count_parameters(head))


def _count_parameters(head):
    open_at = head.find("(")
    depth, commas, body = 0, 0, False
    for char in head[open_at:]:
        if char in "(<[{":
            depth += 1
        elif char in ")>]}":
            depth -= 1
            if depth == 0:
                break
        elif char == "," and depth == 1:
            commas += 1
        if depth >= 1 and not char.isspace() and char != "(":
            body = True
    return commas + 1 if body else 0
