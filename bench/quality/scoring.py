"""Scores answers as tests/eval/README.md says: the whole string, or for descriptions the share of listed objects that are right."""

from collections import Counter, defaultdict


def listed_items(answer):
    """The objects of a description, as a multiset: rows and objects are parted by commas and row ends."""
    return Counter(item.strip(". ") for item in answer.replace(". Row", ", Row").split(","))


def item_score(answer, expected):
    """What both lists name over the longer list."""
    said, true = listed_items(answer), listed_items(expected)
    return (said & true).total() / max(said.total(), true.total())


def task_scores(rows, answers):
    """{task: percent} with `describe_items` beside `describe`, and `all` over the questions."""
    scores = defaultdict(list)
    for row in rows:
        answer = answers[str(row["id"])]
        right = float(answer == row["answer"])
        scores[row["task"]].append(right)
        scored = right
        if row["task"] == "describe":
            scored = item_score(answer, row["answer"])
            scores["describe_items"].append(scored)
        scores["all"].append(scored)
    return {task: 100 * sum(values) / len(values) for task, values in scores.items()}
