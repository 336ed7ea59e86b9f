"""`make exam`: questions about bugs, from the mutants that prove the graders, and their key.

    python -m labs.tools.cohort.exam --lesson=4 --seed=2026 --output=build/exam

    lesson4-2026.md, .html          the sheet: a function with a bug, what is seen, why
    lesson4-2026-key.md, .html      the answers, the points, and the test that finds each bug

The same lesson, seed, count and language give the same files. What a bug does and what a test
checks is told in English: those texts have no translation.
"""

from __future__ import annotations

import ast
import random
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

from labs.tools.course.exercises import ROOT, every_lesson, name_of, of_lesson, word_of
from labs.tools.machine.command import CommandError, Options, in_a_line, typed_path, whole_number
from labs.tools.proving.prove_mutants import Mutant, file_of, read_mutants

PROGRAM = "make exam"
CHOICES, LETTERS = 4, "ABCD"
LONGEST = 40  # lines of an excerpt
MARK = re.compile(r"^.*\b(?:SOLUTION|your code, exercise)\b.*\n", re.MULTILINE)
BEGINS, ENDS = re.compile(r"[A-Za-z_](?!.*:$)"), re.compile(r"\}")  # of a function in C
LABEL = re.compile(r"\w+:")
FENCES = {".c": "c", ".h": "c", ".asm": "nasm"}

WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
STYLE = """<style>
body { font: 11pt/1.4 "DejaVu Sans", "Noto Sans CJK SC", sans-serif;
  margin: 2em auto; max-width: 50em; padding: 0 1em; }
pre { background: #f4f4f4; padding: .6em; overflow-x: auto; font-size: 9pt; tab-size: 8; }
h2 { break-after: avoid; }
</style>"""


@dataclass(frozen=True)
class Question:
    """A bug, as a sheet asks about it: the excerpt, and the choices in their order."""

    mutant: Mutant
    pitfall: str
    excerpt: str
    seen: tuple[str, ...]
    fails: tuple[str, ...]

    @property
    def right(self) -> tuple[str, str]:
        """The letters of the right choices."""
        seen = LETTERS[self.seen.index(self.mutant.title)]
        return seen, LETTERS[self.fails.index(title_of(self.mutant.caught_by))]


@cache
def functions(path: str) -> dict[str, str]:
    """The tests of a file, with their docstrings."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {node.name: " ".join((ast.get_docstring(node) or "").split()) for node in found}


def title_of(test: str) -> str:
    """What a test checks: the first sentence of its docstring, or its name in words."""
    path, _, name = test.partition("::")
    function = name.partition("[")[0]
    text = functions(path).get(function)
    in_words = function.removeprefix("test_").replace("_", " ").capitalize()
    return re.split(r"(?<=[.!?]) ", text)[0] if text else f"{in_words}."


def changed(mutant: Mutant) -> tuple[list[str], list[str]] | None:
    """The file's lines without the bug and with it, marks of exercises left out; None where a sheet
    cannot show it, since it is at several places."""
    if len(mutant.edits) != 1:
        return None
    ((path, old, new),) = mutant.edits
    source = (ROOT / path).read_text(encoding="utf-8")
    pair = (source, source.replace(old, new, 1))
    right, wrong = (MARK.sub("", text).split("\n") for text in pair)
    return right, wrong


def excerpt_of(mutant: Mutant) -> str | None:
    """The function with the bug; None where a sheet cannot show it."""
    if (both := changed(mutant)) is None:
        return None
    right, wrong = both
    is_c = mutant.edits[0][0].endswith((".c", ".h"))
    begin = same(right, wrong)
    end = max(begin, len(wrong) - 1 - same(right[begin:][::-1], wrong[begin:][::-1]))
    if begin >= len(wrong):
        return None
    while begin > 0 and not (BEGINS if is_c else LABEL).match(wrong[begin]):
        begin -= 1
    while end < len(wrong) - 1 and not (ENDS.match(wrong[end]) if is_c else not wrong[end]):
        end += 1
    excerpt = wrong[begin : end + 1]
    return "\n".join(excerpt).rstrip() if 3 <= len(excerpt) <= LONGEST else None


def same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines are the same from the beginning on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def questions(lesson: int, seed: int, count: int) -> list[Question]:
    """So many, from all exercises alike. Raises CommandError if there are not so many."""
    chance = random.Random(f"{name_of(lesson)} {seed}")
    asked: dict[str, list[Question]] = {}
    exercises = [each.id for each in of_lesson(lesson)]
    tests = sorted({title_of(m.caught_by) for e in exercises for m, _ in bugs(e)})
    for exercise in exercises:
        found = bugs(exercise)
        titles = sorted({mutant.title for mutant, _ in found})
        chance.shuffle(found)
        asked[exercise] = []
        for mutant, pitfall in found:
            if len(titles) < CHOICES or len(asked[exercise]) == count:
                break
            if excerpt := excerpt_of(mutant):
                seen = choices(chance, mutant.title, titles)
                fails = choices(chance, title_of(mutant.caught_by), tests)
                asked[exercise].append(Question(mutant, pitfall, excerpt, seen, fails))
    chance.shuffle(exercises)
    turns = [q for i in range(count) for e in exercises for q in asked[e][i : i + 1]]
    if len(turns) < count:
        raise CommandError(f"COUNT={count}: {name_of(lesson)} has {len(turns)} bugs that fit")
    return turns[:count]


def bugs(exercise: str) -> list[tuple[Mutant, str]]:
    """The exercise's mutants that build, with the pitfall that each stands for."""
    text = file_of(exercise).read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    found = [mutant for mutant in read_mutants(exercise, text) if mutant.compiles]
    return [(m, tables[m.name.removeprefix(f"{exercise}-")]["pitfall"]) for m in found]


def choices(chance: random.Random, right: str, others: Sequence[str]) -> tuple[str, ...]:
    """The right one among others, in any order."""
    wrong = chance.sample([each for each in others if each != right], CHOICES - 1)
    return tuple(chance.sample([right, *wrong], CHOICES))


def sheet(lesson: int, asked: Sequence[Question], language: str) -> Iterator[str]:
    """What students get."""
    words = WORDS[language]
    yield f"# {words['title'].format(lesson=every_lesson()[lesson])}\n\n{words['head']}\n"
    for number, each in enumerate(asked, 1):
        yield from heading(number, each, words)
        for part, (ask, options) in zip(
            "ab", (("seen", each.seen), ("fails", each.fails)), strict=True
        ):
            yield f"**({part})** {words[ask]}\n"
            yield "\n".join(
                f"- {letter}. {text}" for letter, text in zip(LETTERS, options, strict=True)
            )
            yield ""
        yield f"**(c)** {words['why']}\n"


def heading(number: int, asked: Question, words: dict[str, str]) -> Iterator[str]:
    """A question's title and its excerpt."""
    path = asked.mutant.edits[0][0]
    yield f"## {words['question'].format(number=number, exercise=asked.mutant.exercise)}\n"
    yield f"`{path}`\n\n```{FENCES.get(Path(path).suffix, 'text')}\n{asked.excerpt}\n```\n"


def key(lesson: int, asked: Sequence[Question], language: str) -> Iterator[str]:
    """What the instructor keeps."""
    words = WORDS[language]
    yield f"# {words['key'].format(lesson=every_lesson()[lesson])}\n"
    for number, each in enumerate(asked, 1):
        seen, fails = each.right
        yield f"## {words['question'].format(number=number, exercise=each.mutant.exercise)}\n"
        yield words["answer"].format(seen=f"{seen}: {each.mutant.title}.", fails=f"{fails}.") + "\n"
        lines = [*unified_diff(*changed(each.mutant)[::-1], n=0, lineterm="")][3:]
        yield "\n".join([f"{words['line']}\n", "```diff", *lines, "```\n"])
        yield words["about"].format(pitfall=each.pitfall, test=each.mutant.caught_by) + "\n"


def page(markdown: str, language: str) -> str:
    """The same for a browser and a printer."""
    title = markdown.partition("\n")[0].lstrip("# ")
    body = MarkdownIt().render(markdown)
    head = f'<meta charset="utf-8"><title>{title}</title>{STYLE}'
    lang = language.replace("_", "-")
    return (
        f'<!doctype html>\n<html lang="{lang}"><head>{head}</head>\n'
        f"<body><main>\n{body}</main></body></html>\n"
    )


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = Options(PROGRAM)
    parser.add_argument("--lesson", required=True, choices=[word_of(n) for n in every_lesson()])
    parser.add_argument("--seed", required=True, type=whole_number(0, 2**31))
    parser.add_argument("--count", default=6, type=whole_number(1, 40))
    parser.add_argument("--language", default="en", choices=sorted(WORDS))
    parser.add_argument("--output", default=ROOT / "build/exam", type=typed_path)
    options = parser.parse_args()
    lesson = next(n for n in every_lesson() if word_of(n) == options.lesson)
    asked = questions(lesson, options.seed, options.count)
    options.output.mkdir(parents=True, exist_ok=True)
    for end, make in (("", sheet), ("-key", key)):
        text = "\n".join(make(lesson, asked, options.language))
        for kind, whole in ((".md", text), (".html", page(text, options.language))):
            path = options.output / f"{name_of(lesson)}-{options.seed}{end}{kind}"
            path.write_text(whole, encoding="utf-8")
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line(PROGRAM, main))
