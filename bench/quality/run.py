"""Accuracy of the demo model on the held-out sets, by our binary and by transformers on the same files. `make eval-demo` runs it.

transformers' answers are kept in build/quality and used again while model, set and versions stay the same.
"""

import argparse
import hashlib
import json
import os
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))

import triptych_cli
from scoring import task_scores
from triptych_cli import ROOT, Triptych, needed

SETS = ("demo", "free", "easy_vqa", "turns")
SMALL_TASK = 100  # questions; below it one answer is worth a point and more, and the task counts in its set's total only
NAMES = (
    "color", "shape", "count", "exist", "spatial", "locate", "cell", "read", "more", "describe_items", "two", "free", "easy_vqa",
    "turns", "blind_excess_max", "hf_gap_max",
)  # fmt: skip
CACHE = ROOT / "build" / "quality"


def read_set(folder, limit):
    """The questions of a set, or every n-th so that about `limit` are left."""
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines() if line.strip()]
    return rows[:: max(1, len(rows) // limit)] if limit else rows


def set_key(model, folder):
    """A hash of everything that decides transformers' answers to a set."""
    import torch
    import transformers

    digest = hashlib.sha256(f"{transformers.__version__} {torch.__version__}".encode())
    for path in sorted([*model.iterdir(), *folder.rglob("*")]):
        if path.is_file():
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def transformers_answers(model, folder, rows, limit, threads):
    """{id: answer}; from the cache where the same model has answered the same set before."""
    cached = CACHE / f"transformers_{folder.name}_{limit or 'all'}_{set_key(model, folder)}.json"
    if not cached.exists():
        from transformers_answers import answer_all

        answers = answer_all(model, folder, rows, threads)
        CACHE.mkdir(parents=True, exist_ok=True)
        cached.write_text(json.dumps({str(row["id"]): answer for row, answer in zip(rows, answers)}))
    else:
        print(f"{folder.name}: transformers' answers from {cached.relative_to(ROOT)}")
    return json.loads(cached.read_text())


def our_answers(ours, model, folder, limit, blind):
    """{id: answer} by `triptych eval`."""
    arguments = ["eval", model, "--set", folder, "--json"]
    if limit:
        arguments += ["--limit", limit]
    if blind:
        arguments.append("--blind")
    report, _ = ours.run(*arguments)
    return {str(line["id"]): line["answer"] for line in needed(report, "answers", "triptych eval")}


def evaluate(ours, model, name, limit, threads, with_transformers):
    """{column: {task: accuracy in points}} of one set, the chance of each task, and the tasks with enough questions to compare."""
    folder = ROOT / "tests" / "eval" / name
    rows = read_set(folder, limit)
    answers = {"ours": our_answers(ours, model, folder, limit, False), "blind": our_answers(ours, model, folder, limit, True)}
    if with_transformers:
        answers["transformers"] = transformers_answers(model, folder, rows, limit, threads)
    tasks = json.loads((folder / "set.json").read_text())["tasks"]
    chance = {task: 100 * value["chance"] for task, value in tasks.items()}
    total = sum(value["questions"] for value in tasks.values())
    chance["all"] = sum(chance[task] * value["questions"] for task, value in tasks.items()) / total
    large = {"all", *(task for task, value in tasks.items() if value["questions"] >= SMALL_TASK)}
    if "describe" in large:
        large.add("describe_items")
    result = {column: task_scores(rows, values) for column, values in answers.items()}
    if with_transformers:
        differing = [row["id"] for row in rows if answers["ours"][str(row["id"])] != answers["transformers"][str(row["id"])]]
        print(f"{name}: {len(rows)} questions; {len(differing)} answers differ from transformers' ({', '.join(map(str, differing[:10]))})")
    return result, chance, large


def print_table(name, result, chance):
    """A row a task."""
    print(f"\n{name:12}{'ours':>10}{'transformers':>14}{'apart':>8}{'blind':>10}{'chance':>10}{'over':>8}")
    for task in result["ours"]:
        theirs = result.get("transformers", {}).get(task)
        row = f"{task:12}{result['ours'][task]:10.2f}"
        row += f"{theirs:14.2f}{abs(result['ours'][task] - theirs):8.2f}" if theirs is not None else f"{'-':>14}{'-':>8}"
        over = f"{result['blind'][task] - chance[task]:8.2f}" if task in chance else ""
        print(f"{row}{result['blind'][task]:10.2f}{chance.get(task, float('nan')):10.2f}{over}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    triptych_cli.add_arguments(parser)
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "demo")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--limit", type=int, default=0, help="about this many questions a set; 0: all")
    parser.add_argument("--without-transformers", action="store_true")
    arguments = parser.parse_args()
    ours = Triptych(arguments.binary, arguments.threads)
    result, gaps, excess = {}, defaultdict(float), defaultdict(float)
    for name in arguments.sets:
        scores, chance, large = evaluate(ours, arguments.model, name, arguments.limit, arguments.threads, not arguments.without_transformers)
        print_table(name, scores, chance)
        if name == "demo":
            result.update({task: value for task, value in scores["ours"].items() if task not in ("all", "describe")})
        else:
            result[name] = scores["ours"]["all"]
        for task in large:
            if task in chance and task in scores["blind"]:  # a limited run may lack a task
                excess[name, task] = scores["blind"][task] - chance[task]
            if task in scores.get("transformers", {}):
                gaps[name, task] = abs(scores["ours"][task] - scores["transformers"][task])
    result["blind_excess_max"] = max(excess.values())
    if gaps:
        result["hf_gap_max"] = max(gaps.values())
    print("\nlargest over chance without the picture: %.2f points, %s" % (result["blind_excess_max"], max(excess, key=excess.get)))
    if gaps:
        print("largest distance to transformers: %.2f points, %s" % (result["hf_gap_max"], max(gaps, key=gaps.get)))
    print("RESULT " + triptych_cli.flat_json({name: result[name] for name in NAMES if name in result}))


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
