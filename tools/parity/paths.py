"""Where cases and goldens lie."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "parity" / "cases"
GOLDENS = ROOT / "tests" / "parity" / "goldens"
PICTURES = GOLDENS / "pictures"


def merged(base, changes):
    """`base` with `changes` on top, objects merged key by key; a null removes nothing, it is a value."""
    result = dict(base)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def load_case(name):
    """The case's JSON; `extends` names another case whose keys it takes over and changes."""
    case = json.loads((CASES / f"{name}.json").read_text())
    base = case.pop("extends", None)
    if base:
        case = merged(load_case(base), case)
    case["name"] = name
    return case


def case_names(chosen):
    """The chosen case names, or all of them."""
    return chosen or sorted(path.stem for path in CASES.glob("*.json"))


def layouts_of(case):
    """The layouts of a case, each with the folder name of its checkpoint."""
    layouts = case["checkpoint"].get("layouts", [{}])
    for index, layout in enumerate(layouts):
        folder = "checkpoint" if index == 0 else f"checkpoint_{layout['name']}"
        yield folder, layout


def relative(path):
    """`path` as the repository spells it."""
    return path.relative_to(ROOT).as_posix()
